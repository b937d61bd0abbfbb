"""Migrations: the schema, as an append-only list of steps."""

# messages.id is channel << 40
# seq: a channel's messages are stored together, in order.
M001_INITIAL = """
CREATE TABLE channels (
    id INTEGER PRIMARY KEY, platform TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL,
    name TEXT NOT NULL, chat_type TEXT NOT NULL, UNIQUE (platform, account, channel)
) STRICT;
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY, channel INTEGER NOT NULL, thread TEXT NOT NULL, name TEXT NOT NULL,
    created INTEGER NOT NULL, UNIQUE (channel, thread)
) STRICT;
CREATE TABLE cursors (
    platform TEXT NOT NULL, account TEXT NOT NULL, cursor TEXT NOT NULL, PRIMARY KEY (platform, account)
) STRICT, WITHOUT ROWID;
CREATE TABLE denied (
    platform TEXT NOT NULL, account TEXT NOT NULL, reason TEXT NOT NULL, times INTEGER NOT NULL,
    PRIMARY KEY (platform, account, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY, channel INTEGER NOT NULL, conversation INTEGER NOT NULL,
    kind TEXT NOT NULL, platform_id TEXT NOT NULL,
    author_id TEXT NOT NULL, author_name TEXT NOT NULL, author_marks INTEGER NOT NULL,
    sent INTEGER NOT NULL, received INTEGER NOT NULL, text TEXT NOT NULL,
    standing TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, trace TEXT NOT NULL, turn INTEGER,
    reply_to TEXT, quote BLOB, forward BLOB, album TEXT, edited INTEGER, deleted INTEGER
) STRICT;
CREATE UNIQUE INDEX messages_once ON messages (channel, platform_id, kind);
CREATE INDEX messages_of_conversation ON messages (conversation);
CREATE INDEX messages_of_album ON messages (turn) WHERE album IS NOT NULL AND turn IS NOT NULL;

CREATE TABLE changes (
    channel INTEGER NOT NULL, kind TEXT NOT NULL, platform_id TEXT NOT NULL, message_id TEXT NOT NULL,
    author_id TEXT, sent INTEGER NOT NULL, received INTEGER NOT NULL, text TEXT NOT NULL, refs BLOB,
    outcome TEXT NOT NULL, PRIMARY KEY (channel, kind, platform_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_of_message ON changes (channel, message_id);
CREATE TABLE reactions (
    channel INTEGER NOT NULL, message_id TEXT NOT NULL, emoji TEXT NOT NULL, author_id TEXT NOT NULL,
    added INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (channel, message_id, emoji, author_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE refs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, public_name TEXT NOT NULL UNIQUE,
    channel INTEGER NOT NULL, conversation INTEGER NOT NULL, message INTEGER NOT NULL,
    channel_id TEXT NOT NULL, message_id TEXT NOT NULL, item TEXT NOT NULL,
    author_id TEXT NOT NULL, author_name TEXT NOT NULL, author_marks INTEGER NOT NULL, sent INTEGER NOT NULL,
    kind TEXT NOT NULL, mime TEXT NOT NULL, file_name TEXT, size INTEGER, duration REAL, width INTEGER, height INTEGER,
    caption TEXT, locator BLOB, sealed BLOB, sha256 TEXT, created INTEGER NOT NULL, stored INTEGER NOT NULL,
    unclaimed INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, fetched INTEGER, fetched_bytes INTEGER,
    ended INTEGER
) STRICT;
CREATE INDEX refs_of_channel ON refs (channel);
CREATE INDEX refs_unclaimed ON refs (conversation, author_id) WHERE unclaimed = 1;
CREATE INDEX refs_fetched ON refs (channel, fetched) WHERE fetched IS NOT NULL;
CREATE TABLE message_refs (
    message INTEGER NOT NULL, role TEXT NOT NULL, position INTEGER NOT NULL, ref INTEGER NOT NULL,
    PRIMARY KEY (message, role, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_refs_of_ref ON message_refs (ref);

CREATE TABLE turns (
    id INTEGER PRIMARY KEY, channel INTEGER NOT NULL, conversation INTEGER NOT NULL, number INTEGER NOT NULL,
    message INTEGER NOT NULL, author_id TEXT NOT NULL, album TEXT, trace TEXT NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL, attempt INTEGER NOT NULL,
    created INTEGER NOT NULL, ready INTEGER NOT NULL, started INTEGER, ended INTEGER,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_state ON turns (state, conversation);
CREATE TABLE sessions (
    conversation INTEGER PRIMARY KEY, memory BLOB, turns INTEGER NOT NULL, manifest BLOB NOT NULL
) STRICT;
CREATE TABLE steps (
    id INTEGER PRIMARY KEY, trace TEXT NOT NULL, at INTEGER NOT NULL, stage TEXT NOT NULL, outcome TEXT NOT NULL,
    reason TEXT NOT NULL, subject TEXT NOT NULL
) STRICT;
CREATE INDEX steps_of_trace ON steps (trace);

CREATE TABLE parcels (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, channel INTEGER NOT NULL, conversation INTEGER NOT NULL,
    turn INTEGER, kind TEXT NOT NULL, text TEXT NOT NULL, markup TEXT NOT NULL, files BLOB, reply_to TEXT, edits TEXT,
    trace TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, reason TEXT NOT NULL,
    created INTEGER NOT NULL, changed INTEGER NOT NULL, ready INTEGER NOT NULL, message_id TEXT
) STRICT;
CREATE INDEX parcels_by_state ON parcels (state, conversation);
CREATE INDEX parcels_of_turn ON parcels (turn);
CREATE INDEX parcels_of_message ON parcels (channel, message_id) WHERE message_id IS NOT NULL;

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY, mime TEXT NOT NULL, size INTEGER NOT NULL, kept INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_uses (
    sha256 TEXT NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (sha256, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE uploads (
    id TEXT PRIMARY KEY, conversation TEXT NOT NULL, file_name TEXT NOT NULL, mime TEXT NOT NULL, size INTEGER NOT NULL,
    written INTEGER NOT NULL, created INTEGER NOT NULL, announced TEXT, sha256 TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE grants (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, conversation TEXT, note TEXT NOT NULL,
    created INTEGER NOT NULL, expires INTEGER
) STRICT, WITHOUT ROWID;
"""

# Separate from every other list: being paired in direct messages gives no right in any channel.
M002_PAIRINGS = """
CREATE TABLE pairings_asked (
    platform TEXT NOT NULL, account TEXT NOT NULL, sender_id TEXT NOT NULL, name TEXT NOT NULL, hash BLOB NOT NULL,
    asked INTEGER NOT NULL, expires INTEGER NOT NULL, tries_left INTEGER NOT NULL,
    PRIMARY KEY (platform, account, sender_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE pairings (
    platform TEXT NOT NULL, account TEXT NOT NULL, sender_id TEXT NOT NULL, name TEXT NOT NULL,
    since INTEGER NOT NULL, PRIMARY KEY (platform, account, sender_id)
) STRICT, WITHOUT ROWID;
"""

# A message's root is the first message of its thread. Changes are numbered in their channel, so that a session gets
# each of them once.
M003_THREADS_AND_READ_POSITIONS = """
ALTER TABLE messages ADD COLUMN root TEXT;
UPDATE messages SET root = coalesce(
    (SELECT v.thread FROM conversations v WHERE v.id = messages.conversation AND v.thread <> ''), reply_to);
UPDATE messages SET root = NULL WHERE root = platform_id;
UPDATE messages SET root = (
    WITH RECURSIVE up (at, steps) AS (
        SELECT messages.root, 0 UNION ALL
        SELECT m.root, steps + 1 FROM up JOIN messages m ON m.channel = messages.channel AND m.platform_id = up.at
        WHERE m.root IS NOT NULL AND steps < 100
    ) SELECT at FROM up ORDER BY steps DESC LIMIT 1
) WHERE root = reply_to;
CREATE INDEX messages_of_root ON messages (channel, root, deleted, sent) WHERE root IS NOT NULL;
CREATE INDEX messages_in_time ON messages (conversation, sent);
ALTER TABLE changes ADD COLUMN number INTEGER;
CREATE UNIQUE INDEX changes_in_order ON changes (channel, number) WHERE number IS NOT NULL;
ALTER TABLE sessions ADD COLUMN lost BLOB;
ALTER TABLE sessions ADD COLUMN compacted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN told_seq INTEGER;
ALTER TABLE sessions ADD COLUMN told_change INTEGER;
"""

# The search index is stored in segments, each of consecutive messages. Messages whose text changed are noted until the
# segments are updated. Arrivals cost nothing: only changes are noted.
M004_SEARCH_INDEX = """
CREATE TABLE search_segments (
    channel INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, version TEXT NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (channel, first)
) STRICT;
CREATE TABLE search_stale (number INTEGER PRIMARY KEY AUTOINCREMENT, message INTEGER NOT NULL) STRICT;
CREATE INDEX search_stale_of_message ON search_stale (message, number);
CREATE TRIGGER message_reads_otherwise AFTER UPDATE OF text, deleted, root, author_id ON messages
BEGIN INSERT INTO search_stale (message) VALUES (new.id); END;
CREATE TRIGGER message_goes AFTER DELETE ON messages
BEGIN INSERT INTO search_stale (message) VALUES (old.id); END;
"""

# The highest row ids of aged messages; never reused, because pages, traces and sessions hold them.
M005_RETENTION = """
ALTER TABLE channels ADD COLUMN aged_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE channels ADD COLUMN aged_change INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN aged_turns INTEGER NOT NULL DEFAULT 0;
"""

M006_TURN_COSTS = """
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN cost REAL;
ALTER TABLE turns ADD COLUMN model TEXT NOT NULL DEFAULT '';
"""

# A parcel's text without its platform's markup: sent again if the markup is refused, and stored as the message.
M007_PARCEL_PLAIN_TEXT = """
ALTER TABLE parcels ADD COLUMN plain TEXT NOT NULL DEFAULT '';
"""

# A parcel records across crashes how often it failed, what may have arrived, and whether a person retried it. A
# conversation's lease records who sends in it, until when, and until when its platform asked to wait.
M008_PARCEL_HISTORY = """
ALTER TABLE parcels ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parcels ADD COLUMN doubt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parcels ADD COLUMN tried INTEGER;
ALTER TABLE parcels ADD COLUMN asked INTEGER;
ALTER TABLE parcels ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
UPDATE parcels SET doubt = 2 WHERE state = 'uncertain';
CREATE TABLE leases (
    conversation INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL, until INTEGER NOT NULL,
    patience INTEGER NOT NULL DEFAULT 0
) STRICT;
"""

# Derived from bytes, by their hash. The terms of a reading are stored by term, so that a search holds none of them in
# memory; `indexed` is the version that made them, empty until the first search, and `edition` that of the text.
M009_READINGS_AND_RENDITIONS = """
CREATE INDEX refs_of_bytes ON refs (sha256) WHERE sha256 IS NOT NULL;
CREATE INDEX refs_with_bytes ON refs (channel, sha256) WHERE sha256 IS NOT NULL;
CREATE TABLE readings (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sha256 TEXT NOT NULL, reader TEXT NOT NULL, unit TEXT NOT NULL,
    total INTEGER NOT NULL, unread TEXT, reason TEXT NOT NULL, notes BLOB NOT NULL, edition INTEGER NOT NULL DEFAULT 1,
    indexed TEXT NOT NULL DEFAULT '', parts INTEGER NOT NULL DEFAULT 0, languages TEXT NOT NULL DEFAULT '',
    UNIQUE (sha256, reader)
) STRICT;
CREATE INDEX readings_by_index ON readings (indexed);
CREATE TABLE reading_parts (
    reading INTEGER NOT NULL, number INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (reading, number)
) STRICT;
CREATE TABLE reading_words (
    term INTEGER NOT NULL, reading INTEGER NOT NULL, parts BLOB NOT NULL, PRIMARY KEY (term, reading)
) STRICT, WITHOUT ROWID;
CREATE INDEX reading_words_of_reading ON reading_words (reading);
CREATE TABLE renditions (
    sha256 TEXT NOT NULL, name TEXT NOT NULL, blob TEXT NOT NULL, mime TEXT NOT NULL, PRIMARY KEY (sha256, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX renditions_as_blobs ON renditions (blob);
CREATE TABLE prints (sha256 TEXT PRIMARY KEY, bits BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE likenesses (
    sha256 TEXT NOT NULL, other TEXT NOT NULL, likeness TEXT NOT NULL, PRIMARY KEY (sha256, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX likenesses_to_other ON likenesses (other);
"""

# Withdrawn refs: ids that are kept until no client can still use them, with a mark while copies may exist in a
# session's folder; and bytes that lost a use, to be deleted once they are unused.
M010_DELETIONS = """
CREATE TABLE refs_gone (
    id TEXT PRIMARY KEY, channel INTEGER NOT NULL, at INTEGER NOT NULL, has_copies INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX refs_gone_with_copies ON refs_gone (channel) WHERE has_copies = 1;
CREATE TABLE blobs_forsaken (sha256 TEXT PRIMARY KEY, since INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""

# What send_media fetches from a URL has no ref; it counts toward the channel's daily limit.
M011_FETCHES_BY_URL = """
CREATE TABLE fetched_elsewhere (channel INTEGER NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
CREATE INDEX fetched_elsewhere_lately ON fetched_elsewhere (channel, at);
"""

# A ref may be fetched again, or be deleted with its message: each fetch counts. Those of the last day are known.
M012_ALL_FETCHES = """
ALTER TABLE fetched_elsewhere RENAME TO fetches;
DROP INDEX fetched_elsewhere_lately;
CREATE INDEX fetches_lately ON fetches (channel, at);
INSERT INTO fetches SELECT channel, fetched, fetched_bytes FROM refs
WHERE fetched_bytes > 0 AND fetched > (SELECT max(fetched) FROM refs) - 86400000000;
DROP INDEX refs_fetched;
"""

# `suspect`: the turn was running when the process died. `interruptions`: how often it was the only one that ran then.
# `retries`: how often a person retried it after it failed.
M013_TURN_INTERRUPTIONS = """
ALTER TABLE turns ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN interruptions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;
"""

# How many arrivals each account brought, counted apart from the rows they left. Starts with the stored rows.
M014_ARRIVAL_COUNTERS = """
CREATE TABLE arrivals (
    platform TEXT NOT NULL, account TEXT NOT NULL, taken INTEGER NOT NULL, duplicates INTEGER NOT NULL DEFAULT 0,
    forgotten INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (platform, account)
) STRICT, WITHOUT ROWID;
INSERT INTO arrivals (platform, account, taken) SELECT platform, account, sum(times) FROM (
    SELECT platform, account, times FROM denied
    UNION ALL SELECT c.platform, c.account, count(*) FROM changes x JOIN channels c ON c.id = x.channel GROUP BY c.id
    UNION ALL SELECT c.platform, c.account, count(*) FROM messages m JOIN channels c ON c.id = m.channel
        WHERE NOT (m.outcome = 'answered' AND m.turn IS NULL) GROUP BY c.id
) GROUP BY platform, account;
"""

# What uploads cost: the channel whose daily limit they count toward, when they were finished, and whether a client
# knows the id and may resume after a restart. Rows without a channel were begun by a version that did not count them.
M015_UPLOAD_LIMITS = """
ALTER TABLE uploads ADD COLUMN channel INTEGER;
ALTER TABLE uploads ADD COLUMN finished INTEGER;
ALTER TABLE uploads ADD COLUMN resumable INTEGER NOT NULL DEFAULT 1;
UPDATE uploads SET finished = created WHERE sha256 IS NOT NULL;
CREATE INDEX uploads_unfinished ON uploads (channel, size) WHERE sha256 IS NULL;
"""

# `owner`: the gateway that claimed the turn; empty if a version without owners did. `fence` grows with each claim, so
# that a late owner can be told from the present one. `until` is when the claim ends; 0 if only its owner ends it.
M016_TURN_OWNERS = """
ALTER TABLE turns ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN until INTEGER NOT NULL DEFAULT 0;
"""

# Changed messages are noted for the search index by the code that changes them: another engine's triggers differ.
M017_SEARCH_NOTES_WITHOUT_TRIGGERS = """
DROP TRIGGER message_reads_otherwise;
DROP TRIGGER message_goes;
"""

# What the escapes of text begin with, from the first text on that SQLite cannot store as it is.
M018_TEXT_ESCAPE = """
CREATE TABLE text_escape (mark TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""

# Every attempt to read media, deleted with its ref; what it cost is counted apart, so that a deletion lowers no limit.
# A transcript's segments with their exact times, by its reading.
M019_READING_ATTEMPTS = """
CREATE TABLE reading_attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, channel INTEGER NOT NULL, ref TEXT NOT NULL, sha256 TEXT NOT NULL,
    at INTEGER NOT NULL, form TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, outcome TEXT NOT NULL,
    reason TEXT NOT NULL, milliseconds INTEGER NOT NULL, cached INTEGER NOT NULL, sent_to TEXT NOT NULL, usd REAL,
    seconds REAL NOT NULL, pages INTEGER NOT NULL
) STRICT;
CREATE INDEX reading_attempts_of_ref ON reading_attempts (ref);
CREATE INDEX reading_attempts_of_channel ON reading_attempts (channel, id);
CREATE TABLE reading_costs (
    channel INTEGER NOT NULL, at INTEGER NOT NULL, seconds REAL NOT NULL, pages INTEGER NOT NULL, usd REAL NOT NULL
) STRICT;
CREATE INDEX reading_costs_lately ON reading_costs (channel, at);
CREATE TABLE transcripts (reading INTEGER PRIMARY KEY, told BLOB NOT NULL) STRICT;
"""

# Which blob is the voice message of a text, under a keyed hash of text and voice.
M020_SPEECHES = """
CREATE TABLE speeches (key TEXT PRIMARY KEY, blob TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

# The language that the platform reports for the sender, which decides who can transcribe their voice.
M021_SENDER_LANGUAGES = """
ALTER TABLE messages ADD COLUMN language TEXT;
"""

# Pages of a document that are pictures, so that each is read by the method that fits it.
M022_SCANNED_PAGES = """
ALTER TABLE reading_parts ADD COLUMN scanned INTEGER NOT NULL DEFAULT 0;
"""

# The files that a conversation received are looked up with every reply that names one.
M023_PARCELS_WITH_FILES = """
CREATE INDEX parcels_with_files ON parcels (conversation) WHERE files IS NOT NULL;
"""

# The number that a message's short id is made of, and the length of that id. Messages of older versions get theirs when
# the store is opened.
M024_SHORT_IDS = """
ALTER TABLE messages ADD COLUMN short INTEGER;
ALTER TABLE messages ADD COLUMN short_chars INTEGER NOT NULL DEFAULT 5;
CREATE INDEX messages_by_short ON messages (channel, short);
CREATE INDEX messages_without_short ON messages (id) WHERE short IS NULL;
"""

# The turn whose prompt has the structured context, so that it is attached again when that turn leaves the memory.
M025_CONTEXT_TURNS = """
ALTER TABLE sessions ADD COLUMN context_turn INTEGER NOT NULL DEFAULT 0;
"""

# Whether the sender might command the agent, also by a message that does not address it.
M026_SENDERS_WHO_MAY_COMMAND = """
ALTER TABLE messages ADD COLUMN sender_may_command INTEGER NOT NULL DEFAULT 0;
UPDATE messages SET sender_may_command = 1 WHERE standing = 'observed' AND reason = 'the agent was not addressed';
"""

# What platforms reported about threads, and when: not all of their replies may be stored. A notice that a thread was
# opened is no reply.
M027_THREAD_REPORTS = """
CREATE TABLE thread_reports (
    channel INTEGER NOT NULL, root TEXT NOT NULL, replies INTEGER NOT NULL, last INTEGER, at INTEGER NOT NULL,
    participants BLOB NOT NULL, PRIMARY KEY (channel, root)
) STRICT, WITHOUT ROWID;
UPDATE messages SET root = NULL WHERE outcome = 'unsupported' AND reason = 'a thread was opened at a message';
"""

# The search index is stored in blocks, of which a search loads those that it needs. It is built again, in the
# background; messages that changed before need no note then.
M028_SEARCH_BLOCKS = """
DROP TABLE search_segments;
DELETE FROM search_stale;
CREATE TABLE search_segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, channel INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    version TEXT NOT NULL, edition INTEGER NOT NULL DEFAULT 1, head BLOB NOT NULL
) STRICT;
CREATE INDEX search_segments_of_channel ON search_segments (channel, first);
CREATE TABLE search_blocks (id INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT;
"""

# How far media was read in the background, before anybody asked for it; deleted with its ref.
M029_READ_AHEAD = """
CREATE TABLE read_ahead (ref TEXT PRIMARY KEY, place TEXT NOT NULL, tries INTEGER NOT NULL) STRICT, WITHOUT ROWID;
ALTER TABLE reading_attempts ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0;
"""

# Receipts, slides and screens of one template were taken for copies of each other: pictures are compared again, up
# close, when they are fetched next. Equal bytes stay noted.
M030_LIKENESSES_UP_CLOSE = """
DELETE FROM likenesses WHERE likeness <> 'same';
"""

# Without deleted messages, so that those before a message are counted by the index alone.
M031_LIVING_MESSAGES_IN_TIME = """
DROP INDEX messages_in_time;
CREATE INDEX messages_in_time ON messages (conversation, sent) WHERE deleted IS NULL;
"""

# The other names of authors in the platform's list of users, one per line.
M032_OTHER_NAMES = """
ALTER TABLE messages ADD COLUMN author_other_names TEXT NOT NULL DEFAULT '';
"""

# Vectors of messages, of which results are re-ranked where that is configured; deleted with what they were made of.
M033_SEARCH_VECTORS = """
CREATE TABLE search_vectors (message INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;
"""

# Groups that the agent was added to, with the owner's decision, and what the owner was told, and when.
M034_GROUPS_AND_NOTICES = """
CREATE TABLE group_access (
    platform TEXT NOT NULL, account TEXT NOT NULL, channel TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
    inviter_id TEXT NOT NULL, inviter_name TEXT NOT NULL, everyone INTEGER NOT NULL, asked INTEGER NOT NULL,
    decided INTEGER, PRIMARY KEY (platform, account, channel)
) STRICT, WITHOUT ROWID;
CREATE TABLE owner_notices (
    kind TEXT PRIMARY KEY, text TEXT NOT NULL, at INTEGER NOT NULL, told INTEGER NOT NULL, is_open INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

# What people chose in a conversation by commands, and the message from which on its session knows what was said.
M035_CHAT_SETTINGS = """
CREATE TABLE chat_settings (
    conversation INTEGER PRIMARY KEY, model TEXT, voice INTEGER, begun INTEGER NOT NULL DEFAULT 0
) STRICT;
"""

# `joined`: why a message is answered with the turn of an earlier one; empty for the first message of a turn.
# `unfinished`: the turn's last message fills the platform's limit, and may go on. `restarts` counts how often the turn
# began again because a message joined it while it ran.
M036_JOINED_MESSAGES = """
ALTER TABLE messages ADD COLUMN joined TEXT NOT NULL DEFAULT '';
UPDATE messages SET joined = 'album' WHERE album IS NOT NULL AND turn IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = messages.turn AND t.message = messages.id);
DROP INDEX messages_of_album;
CREATE INDEX messages_joined ON messages (turn) WHERE joined <> '';
ALTER TABLE turns ADD COLUMN unfinished INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
"""

# A parcel's text in the platform's richer format, which is tried first.
M037_PARCEL_RICH_TEXT = """
ALTER TABLE parcels ADD COLUMN rich TEXT NOT NULL DEFAULT '';
"""

# The bytes of files that an account has fetched, by the platform's id of the file; deleted with the bytes.
M038_FILE_IDS = """
ALTER TABLE refs ADD COLUMN file_id TEXT;
CREATE TABLE file_ids (
    platform TEXT NOT NULL, account TEXT NOT NULL, file_id TEXT NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (platform, account, file_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_ids_of_blob ON file_ids (sha256);
"""

# The choices of questions, by the keys that platforms return, and answers in doubt that were reported to people.
M039_CHOICES = """
CREATE TABLE choices (
    key TEXT PRIMARY KEY, question TEXT NOT NULL, position INTEGER NOT NULL, conversation TEXT NOT NULL,
    channel TEXT NOT NULL, parcel TEXT NOT NULL, label TEXT NOT NULL, value TEXT NOT NULL, style TEXT NOT NULL,
    who TEXT NOT NULL, is_numbered INTEGER NOT NULL, created INTEGER NOT NULL, chosen TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX choices_of_parcel ON choices (parcel);
CREATE INDEX choices_of_question ON choices (question);
CREATE INDEX choices_of_conversation ON choices (conversation, created);
CREATE TABLE reported_doubts (parcel TEXT PRIMARY KEY, turn INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""

# The server or workspace of a channel, by which access may be given.
M040_CHANNEL_SERVERS = """
ALTER TABLE channels ADD COLUMN server TEXT NOT NULL DEFAULT '';
"""

# The one person that a parcel is for.
M041_PRIVATE_PARCELS = """
ALTER TABLE parcels ADD COLUMN only_to TEXT;
"""

# `acknowledged`: the seq of the last message that a channel's client acknowledged.
M042_ACKNOWLEDGED_MESSAGES = """
ALTER TABLE chat_settings ADD COLUMN acknowledged INTEGER NOT NULL DEFAULT 0;
"""

# What platforms themselves have heard in media, and whether that is only its beginning.
M043_TRANSCRIPTS = """
ALTER TABLE refs ADD COLUMN transcript TEXT;
ALTER TABLE refs ADD COLUMN is_transcript_partial INTEGER NOT NULL DEFAULT 0;
"""

# Links to bytes, for platforms and clients that fetch from us; of each only a keyed hash.
M044_PUBLISHED_FILES = """
CREATE TABLE published_files (
    hash BLOB PRIMARY KEY, sha256 TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL, ref TEXT,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX published_files_of_blob ON published_files (sha256);
"""

# The places that channels moved to; `channel` is the first id of each, under which everything of it is stored.
M045_MOVED_CHANNELS = """
CREATE TABLE moved_channels (
    platform TEXT NOT NULL, account TEXT NOT NULL, place TEXT NOT NULL, channel TEXT NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (platform, account, place)
) STRICT, WITHOUT ROWID;
"""

# What pictures of the agent show, for people who do not see them.
M046_ALT_TEXTS = """
ALTER TABLE refs ADD COLUMN alt TEXT;
"""

# When messages vanish by the timer of their platform.
M047_EXPIRING_MESSAGES = """
ALTER TABLE messages ADD COLUMN expires INTEGER;
CREATE INDEX messages_expiring ON messages (expires) WHERE expires IS NOT NULL;
"""

# Parcels that are held until the person writes.
M048_CLOSED_WINDOWS = """
ALTER TABLE parcels ADD COLUMN window_closed INTEGER NOT NULL DEFAULT 0;
"""

STEPS = (
    M001_INITIAL,
    M002_PAIRINGS,
    M003_THREADS_AND_READ_POSITIONS,
    M004_SEARCH_INDEX,
    M005_RETENTION,
    M006_TURN_COSTS,
    M007_PARCEL_PLAIN_TEXT,
    M008_PARCEL_HISTORY,
    M009_READINGS_AND_RENDITIONS,
    M010_DELETIONS,
    M011_FETCHES_BY_URL,
    M012_ALL_FETCHES,
    M013_TURN_INTERRUPTIONS,
    M014_ARRIVAL_COUNTERS,
    M015_UPLOAD_LIMITS,
    M016_TURN_OWNERS,
    M017_SEARCH_NOTES_WITHOUT_TRIGGERS,
    M018_TEXT_ESCAPE,
    M019_READING_ATTEMPTS,
    M020_SPEECHES,
    M021_SENDER_LANGUAGES,
    M022_SCANNED_PAGES,
    M023_PARCELS_WITH_FILES,
    M024_SHORT_IDS,
    M025_CONTEXT_TURNS,
    M026_SENDERS_WHO_MAY_COMMAND,
    M027_THREAD_REPORTS,
    M028_SEARCH_BLOCKS,
    M029_READ_AHEAD,
    M030_LIKENESSES_UP_CLOSE,
    M031_LIVING_MESSAGES_IN_TIME,
    M032_OTHER_NAMES,
    M033_SEARCH_VECTORS,
    M034_GROUPS_AND_NOTICES,
    M035_CHAT_SETTINGS,
    M036_JOINED_MESSAGES,
    M037_PARCEL_RICH_TEXT,
    M038_FILE_IDS,
    M039_CHOICES,
    M040_CHANNEL_SERVERS,
    M041_PRIVATE_PARCELS,
    M042_ACKNOWLEDGED_MESSAGES,
    M043_TRANSCRIPTS,
    M044_PUBLISHED_FILES,
    M045_MOVED_CHANNELS,
    M046_ALT_TEXTS,
    M047_EXPIRING_MESSAGES,
    M048_CLOSED_WINDOWS,
)
