"""Words that mean nearly the same, for questions that do not use the words of their answer.

Two sources, both ours and both small: the endings by which English makes one word out of another, and a list of
everyday words that stand for one another in chat. No file is loaded and no model asked.
"""

from functools import lru_cache

from belino.search.tokenizer import stem

# What may end an English word; longest first, each with what may have stood in its place.
_ENDINGS = (
    ("ization", ("ize", "")),
    ("ational", ("ate", "ation")),
    ("fulness", ("ful", "")),
    ("iveness", ("ive",)),
    ("ations", ("ate", "e", "")),
    ("ation", ("ate", "e", "")),
    ("ition", ("e", "ite", "")),
    ("ement", ("e", "")),
    ("ments", ("", "e")),
    ("ment", ("", "e")),
    ("ances", ("", "e", "ant")),
    ("ance", ("", "e", "ant", "ate")),
    ("ence", ("", "e", "ent")),
    ("ible", ("", "e")),
    ("able", ("", "e", "ate")),
    ("ious", ("y", "ion", "")),
    ("sion", ("d", "de", "se", "s")),
    ("tion", ("t", "te", "")),
    ("ical", ("ic", "y", "")),
    ("ness", ("", "y")),
    ("less", ("",)),
    ("ship", ("",)),
    ("hood", ("",)),
    ("ions", ("", "e")),
    ("ies", ("y", "ic")),
    ("ist", ("", "y", "e")),
    ("ism", ("", "e")),
    ("ity", ("", "e", "ous")),
    ("ive", ("", "e", "ion")),
    ("ion", ("", "e")),
    ("ous", ("", "e", "y")),
    ("ful", ("",)),
    ("ant", ("", "e")),
    ("ent", ("", "e")),
    ("ers", ("", "e")),
    ("ing", ("", "e")),
    ("er", ("", "e")),
    ("or", ("", "e")),
    ("al", ("", "e")),
    ("ic", ("", "y")),
    ("ed", ("", "e")),
    ("ly", ("", "e")),
    ("y", ("", "e")),
    ("s", ("",)),
)
_MORE = (
    "",
    "e",
    "y",
    "er",
    "or",
    "ist",
    "ion",
    "ation",
    "ment",
    "al",
    "ic",
    "ive",
    "ful",
    "ity",
    "ance",
    "ence",
    "ness",
    "ous",
    "ing",
    "able",
    "ant",
)
SHORTEST_ROOT = 4

_ALIKE = """
child kid son daughter baby toddler children
parent mom dad mother father mum folks
family relative relatives fam
sibling brother sister
husband wife spouse partner married marriage wedding
boyfriend girlfriend dating relationship
friend buddy pal mate
pet dog cat puppy kitten pup animal
job work career profession occupation
boss manager employer
company firm business startup shop store
hire hired employ
quit resign leave left
fired laid lost
school college university class course study
teacher professor instructor coach mentor
student pupil
degree diploma graduate graduation
exam test quiz
learn study teach lesson
house home apartment flat place
move relocate moved
city town country place
trip travel vacation holiday journey tour visit
flight plane fly airport
hotel hostel airbnb
car vehicle drive auto truck
road highway route
beach sea ocean shore coast
mountain hike trail hiking climb
camp camping tent
food meal dish cuisine
eat dinner lunch breakfast
cook bake recipe cooking baking
dessert cake cookie pastry
drink beverage coffee tea
restaurant cafe diner eatery
movie film cinema
series show tv episode
book novel read reading
author writer write
song music track tune
band concert gig live
instrument guitar piano violin
paint painting art drawing draw artist
photo picture pic image photograph snapshot
game gaming play videogame
sport sports athletic
run race marathon jog running
team club squad
win won victory champion championship
lose defeat
gym workout exercise fitness train
yoga meditation pilates
health healthy wellness
sick ill disease illness
doctor physician hospital clinic
injury hurt injured wound
stress stressed anxiety anxious
sad upset down depressed
happy glad joy excited thrilled
afraid scared fear nervous
angry mad annoyed
tired exhausted
love adore like enjoy favorite favourite
hate dislike
hobby pastime interest activity
buy bought purchase get got
sell sold sale
gift present
money cash fund funds
price cost expensive
cheap affordable
pay paid payment
begin start started launch
finish complete end done
stop quit cease
plan planning intend intention
goal aim target objective dream
hope wish want
try attempt
help support assist aid
give gave donate donation
charity volunteer volunteering nonprofit
community neighborhood local
event festival fair celebration party
birthday anniversary
meet met meeting
talk speak discuss chat conversation speech
tell told say said mention
ask question
answer reply respond
think believe opinion view
know knew aware
feel felt feeling emotion
advice suggest suggestion recommend recommendation tip
idea thought concept
problem issue trouble difficulty challenge challenging
error bug fault failure crash
fix repair solve resolve
solution answer fix
change modify update switch
improve better enhance
make made create build built
break broke broken
find found discover
lose lost missing
see saw watch seen view
look looking search
hear heard listen
remember recall memory
forget forgot
choose chose pick select decide decision choice
reason why cause
important significant essential vital
difficult hard tough challenging
easy simple
fast quick rapid
big large huge
small little tiny
new recent latest
old ancient former
beautiful pretty lovely gorgeous
amazing awesome incredible great wonderful
strange weird odd
funny hilarious humor
smart intelligent clever
kind nice friendly
alone lonely solo
together joint both
weather rain storm sunny snow
garden plant flower
nature outdoors outdoor wildlife
night evening
morning dawn
day daytime
week weekend
computer laptop pc
phone mobile cell
server host machine
password passphrase login credentials
config configuration setting settings
install setup installation
deploy deployment rollout release
file document doc
link url address
religion faith church religious
country nation homeland
language speak tongue
accident crash collision
award prize trophy medal
clothes clothing outfit dress fashion
"""


@lru_cache(maxsize=1)
def _groups() -> dict[str, tuple[str, ...]]:
    """Stems that stand for one another."""
    alike: dict[str, dict[str, None]] = {}
    for line in _ALIKE.split("\n"):
        stems = dict.fromkeys(stem(word, "english") for word in line.split())
        for one in stems:
            alike.setdefault(one, {}).update(stems)
    return {one: tuple(other for other in others if other != one) for one, others in alike.items()}


def alike(word: str) -> tuple[str, ...]:
    """Terms of words that are said instead of this one."""
    return _groups().get(stem(word, "english"), ())


@lru_cache(maxsize=4_096)
def derived(word: str) -> tuple[str, ...]:
    """Terms of English words made from the same root, most of which do not exist."""
    own = stem(word, "english")
    roots = dict.fromkeys((word, own))
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_ROOT:
            bare = word[: -len(ending)]
            roots.update(dict.fromkeys(bare + other for other in instead))
    forms: dict[str, None] = {}
    for root in roots:
        short = root[:-1] if root.endswith(("e", "y")) else root
        if len(short) >= SHORTEST_ROOT:
            forms.update(dict.fromkeys(stem(short + more, "english") for more in _MORE))
    forms.pop(own, None)
    return tuple(forms)
