"""Evidence questions: a month of a group's talk, photos, voice notes, scans, documents and videos, and questions later.

The questions were written from what people remember, mostly in other words than the evidence. Only a part of the media
has a caption; some is named or talked about by the messages around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class PostKind(StrEnum):
    """What a post brings besides its words."""

    TEXT = "text"
    PHOTO = "photo"
    VOICE = "voice note"
    SCAN = "scan"
    DOCUMENT = "document"
    VIDEO = "video"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One message of the group."""

    author: str
    text: str = ""
    kind: PostKind = PostKind.TEXT
    content: tuple[str, ...] = ()
    """What is written on, said in or typed into the media: lines, sentences or paragraphs."""
    name: str = ""
    thread: str = ""
    """Replies of one thread share this; the first post of it begins the thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceQuestion:
    """A question, and words of which the evidence shows some: a recogniser may write numbers in several ways."""

    ask: str
    shows: tuple[str, ...]
    about: str


def _photo(author: str, *lines: str, text: str = "") -> Post:
    return Post(author=author, text=text, kind=PostKind.PHOTO, content=lines)


def _voice(author: str, *sentences: str) -> Post:
    return Post(author=author, kind=PostKind.VOICE, content=sentences)


def _said(author: str, text: str, thread: str = "") -> Post:
    return Post(author=author, text=text, thread=thread)


POSTS: Sequence[Post] = (
    _said("Mira", "Morning all, the heating in the workshop is back on."),
    _said("Jonas", "Finally. Who fixed it?"),
    _said("Mira", "The landlord sent someone at seven."),
    _photo("Jonas", "HARBOUR CAFE", "4 x fish soup   38.00", "2 x berry pie   11.00", "coffee   12.50", "TOTAL 61.50"),
    _said("Jonas", "That was our lunch with the clients, I paid for everybody."),
    _said("Pia", "I still owe you then."),
    _voice("Pia", "Hi, it is me. The plumber comes on Thursday at four, somebody has to open the back door for him."),
    _said("Tom", "Ok, listening later."),
    Post(
        author="Mira",
        kind=PostKind.DOCUMENT,
        name="lease_2026.pdf",
        text="the contract for the workshop",
        content=(
            "The monthly rent is 1,450 euros and is due on the third working day.",
            "The deposit amounts to three monthly rents and is repaid six months after the end.",
            "Either party may end the agreement with a notice period of nine weeks to the end of a quarter.",
            "Pets are welcome in the yard but not in the rooms above the shop.",
        ),
    ),
    _said("Tom", "Did anybody see the cat today?"),
    _said("Jonas", "She was asleep on the kiln."),
    _photo("Tom", "WHO BRINGS WHAT", "Mira - tent, stove", "Jonas - canoe", "Pia - first aid kit", "Tom - lanterns"),
    _said("Pia", "Great plan for the trip, I hope it does not rain."),
    _voice(
        "Jonas", "The code for the new bicycle shed is four seven one nine. Please do not write it on the wall again."
    ),
    _said("Mira", "Noted!"),
    Post(
        author="Pia",
        kind=PostKind.SCAN,
        name="scan0001.pdf",
        content=(
            "CITY DENTAL CLINIC",
            "Invoice 7731",
            "Patient: Pia Lund",
            "Crown, upper left: 420.00",
            "X-ray: 35.00",
            "Please pay within 21 days.",
            "Account DE44 5001 0517",
        ),
    ),
    _said("Pia", "ouch, my teeth are expensive"),
    _said("Tom", "Insurance pays half of that, no?"),
    _said("Mira", "What colour do we paint the front door?", "door"),
    _said("Jonas", "Anything but red, please.", "door"),
    _said("Tom", "Dark green would suit the street.", "door"),
    _said("Pia", "Green it is. I will order two litres from Hansen.", "door"),
    _said("Mira", "Agreed. Delivery is on the nineteenth.", "door"),
    _said("Jonas", "My phone keeps dying on me."),
    Post(
        author="Tom",
        kind=PostKind.VIDEO,
        name="VID_0412.mp4",
        content=(
            "Welcome to the kiln. Turn the left valve first, and wait two minutes before you light it.",
            "KILN START-UP",
        ),
    ),
    _said("Tom", "So that nobody burns their eyebrows again."),
    _photo("Mira", "Flight BZ 482", "Hamburg - Porto", "12 March  06:55", "Gate C11", "Seat 14F"),
    _said("Mira", "I cannot believe how early this is."),
    _said("Jonas", "Bring us port wine."),
    Post(
        author="Jonas",
        kind=PostKind.DOCUMENT,
        name="stock.csv",
        content=(
            "article,place,pieces",
            "stoneware clay 10 kg,shelf B4,12",
            "porcelain clay 5 kg,shelf B5,3",
            "cobalt blue glaze,cabinet 2,7",
            "transparent glaze,cabinet 2,1",
            "kiln cones,drawer 1,140",
        ),
    ),
    _said("Jonas", "Counted everything this morning."),
    _voice("Mira", "I talked to the museum. They want thirty bowls for the opening, and they pay eleven euros each."),
    _said("Pia", "Wow, that is a nice order!"),
    _said("Tom", "Coffee tomorrow?"),
    _photo("Pia", "WiFi Guest", "network: clayhouse", "password: blue-heron-52"),
    _said("Tom", "Thanks, now my sister can get online."),
    Post(
        author="Tom",
        kind=PostKind.DOCUMENT,
        name="minutes_february.docx",
        content=(
            "Present were Mira, Jonas, Pia and Tom. Mira took the notes.",
            "The open studio takes place on 9 May from noon to six. Pia asks the neighbours for chairs.",
            "Jonas proposed to raise the course fee to 85 euros. All were in favour.",
            "The old wheel is given to the school in Altona. Tom drives it there.",
        ),
    ),
    _said("Mira", "No way, really?"),
    _voice("Tom", "Sorry, I am stuck at the vet. The cat has a broken tooth and gets antibiotics for ten days."),
    _said("Mira", "Poor thing, give her a kiss."),
    _said("Jonas", "The printer is out of toner again."),
    _photo("Jonas", "ERROR E-27", "door switch open", "call service 0800 555 0199"),
    _said("Jonas", "The big kiln refuses to start, any ideas?"),
    _said("Pia", "Kick it."),
    _said("Pia", "Who can take the Saturday course in April?", "course"),
    _said("Tom", "I am in Leipzig that weekend.", "course"),
    _said("Mira", "Not me, my brother marries.", "course"),
    _said("Jonas", "Fine, I do it, but then I want the Monday off.", "course"),
    _said("Pia", "You are the best.", "course"),
    Post(
        author="Mira",
        kind=PostKind.SCAN,
        name="IMG_20260211.pdf",
        content=(
            "GAS SAFETY CERTIFICATE",
            "Inspected on 11 February 2026",
            "Next inspection due: August 2027",
            "Leak test: passed",
            "Inspector: R. Okafor",
        ),
    ),
    _said("Mira", "The man was very friendly by the way."),
    _said("Tom", "Did you see the game yesterday?"),
    Post(
        author="Pia",
        kind=PostKind.VIDEO,
        name="clip.mp4",
        content=(
            "This is the new glaze after the firing. We used too much copper, so it turned almost black.",
            "TEST TILE 14",
        ),
    ),
    _said("Jonas", "I actually like it."),
    _photo(
        "Tom", "OPENING HOURS", "Mon closed", "Tue - Fri 10 - 18", "Sat 11 - 15", text="new sign, what do you think?"
    ),
    _said("Pia", "Looks good!"),
    _voice("Pia", "My train is late. Please start without me, I bring the cake at half past five."),
    _said("Mira", "Which cake?"),
    Post(
        author="Jonas",
        kind=PostKind.DOCUMENT,
        name="offer_kiln_repair.pdf",
        content=(
            "Thank you for your enquiry about the front loading kiln.",
            "We offer the replacement of the heating coils for 640 euros plus travel.",
            "The work takes two days. The kiln must be cold when we arrive.",
            "Our offer is valid until the end of May.",
        ),
    ),
    _said("Mira", "That is less than I feared."),
    _said("Tom", "Let us catch up next week."),
    _photo("Pia", "Parcel 00340 4344", "Pick up at: Kiosk Yilmaz", "Elm Street 8", "until 21 March"),
    _said("Pia", "Can someone collect this for me?"),
    _said("Jonas", "On my way."),
    _said("Mira", "Where do we store the bisque pots over the summer?", "summer"),
    _said("Pia", "The cellar is too damp.", "summer"),
    _said("Jonas", "My uncle has a dry barn in Bergedorf.", "summer"),
    _said("Mira", "Perfect, ask him please.", "summer"),
    _voice(
        "Jonas", "The van is in the garage. The brakes are worn, and the repair costs three hundred and eighty euros."
    ),
    _said("Pia", "We need a new van anyway."),
    Post(
        author="Mira",
        kind=PostKind.SCAN,
        name="letter.pdf",
        content=(
            "TAX OFFICE NORTH",
            "Reference 27/410/0093",
            "Your return for 2025 is missing.",
            "Please send it no later than 30 June.",
            "Questions: Ms Albrecht, room 214",
        ),
    ),
    _said("Mira", "Ugh. Mail I do not like."),
    _said("Tom", "The weather has been awful lately."),
    _photo("Mira", "Shopping", "oat milk", "cat litter", "light bulbs E14", "sandpaper 240"),
    _said("Tom", "Ok, on my way to the store."),
    _voice("Tom", "I left the key to the cellar with Mrs Novak on the second floor."),
    _said("Jonas", "Good to know."),
    Post(
        author="Pia",
        kind=PostKind.DOCUMENT,
        name="course_list.txt",
        content=(
            "Beginners: Tuesday 18:00, eight places, taught by Mira.",
            "Advanced: Wednesday 19:00, six places, taught by Jonas.",
            "Children: Friday 15:30, ten places, taught by Pia. Aprons are provided.",
        ),
    ),
    _said("Jonas", "Ha, same here."),
)

QUESTIONS: Sequence[EvidenceQuestion] = (
    EvidenceQuestion(about="photo", ask="How much did the lunch with the clients cost?", shows=("61 50",)),
    EvidenceQuestion(about="photo", ask="What was the total at the harbour cafe?", shows=("61 50",)),
    EvidenceQuestion(about="photo", ask="Who takes the canoe on the camping trip?", shows=("jonas canoe",)),
    EvidenceQuestion(about="photo", ask="What is Pia supposed to bring for the trip?", shows=("first aid",)),
    EvidenceQuestion(about="photo", ask="From which gate does Mira's flight to Porto leave?", shows=("c11",)),
    EvidenceQuestion(about="photo", ask="What is the wifi password for guests?", shows=("blue heron 52",)),
    EvidenceQuestion(about="photo", ask="Which error does the big kiln show?", shows=("e 27", "e27")),
    EvidenceQuestion(about="photo", ask="When do we open on Saturdays?", shows=("11 15",)),
    EvidenceQuestion(about="photo", ask="Where can Pia's parcel be picked up?", shows=("yilmaz",)),
    EvidenceQuestion(about="photo", ask="Which light bulbs were on the shopping list?", shows=("e14",)),
    EvidenceQuestion(about="voice note", ask="When is the plumber coming?", shows=("thursday",)),
    EvidenceQuestion(
        about="voice note", ask="What is the code of the bike shed?", shows=("4719", "four seven one nine")
    ),
    EvidenceQuestion(about="voice note", ask="How many bowls does the museum want?", shows=("thirty",)),
    EvidenceQuestion(about="voice note", ask="What is wrong with the cat?", shows=("tooth",)),
    EvidenceQuestion(
        about="voice note", ask="At what time does Pia arrive with the cake?", shows=("half past five", "5:30")
    ),
    EvidenceQuestion(
        about="voice note",
        ask="How much is the repair of the van?",
        shows=("380", "three hundred and eighty", "300 and 80"),
    ),
    EvidenceQuestion(about="voice note", ask="Who has the cellar key?", shows=("novak",)),
    EvidenceQuestion(about="scan", ask="How much does the dentist want from Pia?", shows=("420 00",)),
    EvidenceQuestion(about="scan", ask="When is the next gas inspection due?", shows=("august 2027",)),
    EvidenceQuestion(about="scan", ask="Until when does the tax office want our return?", shows=("30 june",)),
    EvidenceQuestion(about="scan", ask="Who is our contact at the tax office?", shows=("albrecht",)),
    EvidenceQuestion(about="scan", ask="Within how many days must the dental invoice be paid?", shows=("21 days",)),
    EvidenceQuestion(about="document", ask="How long is the notice period in our lease?", shows=("nine weeks",)),
    EvidenceQuestion(about="document", ask="What is the rent of the workshop?", shows=("1 450",)),
    EvidenceQuestion(about="document", ask="How many kilos of porcelain clay are left, and where?", shows=("b5",)),
    EvidenceQuestion(
        about="document",
        ask="How much transparent glaze do we have in stock?",
        shows=("transparent glaze cabinet 2 1",),
    ),
    EvidenceQuestion(about="document", ask="On which date is the open studio?", shows=("9 may",)),
    EvidenceQuestion(about="document", ask="What happens to the old potter's wheel?", shows=("school in altona",)),
    EvidenceQuestion(about="document", ask="What would the kiln repair cost according to the offer?", shows=("640",)),
    EvidenceQuestion(about="document", ask="How many children fit into the Friday course?", shows=("ten places",)),
    EvidenceQuestion(about="video", ask="Which valve has to be opened first to light the kiln?", shows=("left",)),
    EvidenceQuestion(about="video", ask="Why did the test glaze turn black?", shows=("copper",)),
    EvidenceQuestion(about="video", ask="How long must you wait before lighting the kiln?", shows=("two minutes",)),
    EvidenceQuestion(about="video", ask="What did Pia show about the new glaze?", shows=("copper",)),
    EvidenceQuestion(about="thread", ask="Which colour did we choose for the front door?", shows=("green it is",)),
    EvidenceQuestion(about="thread", ask="When is the door paint delivered?", shows=("nineteenth",)),
    EvidenceQuestion(about="thread", ask="Who teaches the Saturday course in April?", shows=("fine i do it",)),
    EvidenceQuestion(about="thread", ask="Why can't Mira teach on that Saturday in April?", shows=("brother marries",)),
    EvidenceQuestion(about="thread", ask="Where will the bisque pots be kept in summer?", shows=("barn in bergedorf",)),
    EvidenceQuestion(about="thread", ask="What is the problem with the cellar as a store?", shows=("too damp",)),
)
