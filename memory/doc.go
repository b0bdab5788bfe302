// Package memory stores what the bot must not lose: the logs of its places, the journal of its turns, and its facts. It
// is the core.Store of a bot. It does not decide when a turn runs, what a fact is worth, or what a user may ask for.
//
// It defines keys, formats and queries over a small ordered key-value interface (memory/kv).
// The engine is one bbolt file (memory/bolt) or a table of PostgreSQL (memory/postgres).
//
// The package is large because keys, formats and queries share one transaction: a
// batch changes most buckets at once, and a person who is forgotten is deleted from all.
//
// # The file
//
// The data directory (0700) holds one file, synthbot.db (0600), with the buckets below. Numbers in keys are big endian.
// A place's key is its path with '\x01' for '/' and an ending '\x00'; elements of a path hold no control characters, so
// a place and all below it are one contiguous range, in the order of paths. Every key holds its whole place, so that a
// part of a damaged file is still useful.
//
//	meta     name → schema version, clean flag, salt, floor, the file's own name;
//	         "forget ", path → what a Forget in progress deletes (JSON)
//	places   place → head: last number, answered mark, count, time, private (fields)
//	log      place, seq → entry (fields)
//	runs     place, length and text of a last id, or 0xff → ids up to that with seq and hour of receipt (see idRun)
//	ids      ids of older versions: place, platform id → seq, hour (two uvarints); an upgrade drops the bucket
//	due      place, seq → nothing; only while the entry waits
//	journal  place, turn's seq, round, step, part → record (JSON)
//	aliases  place → where it moved, and how far its numbers moved (JSON)
//	gone     keyed hash of a forgotten id → hour of forgetting (uvarint);
//	         'p', keyed hash of a forgotten person → second of their request (uvarint)
//	states   place → state of the conversation (JSON)
//	plugins  plugin, 0, place, key → item with its version (JSON)
//	usage    day, 0, person, engine → counters and cost (fields)
//	facts    number → fact with its former texts (JSON)
//	words    origin, term, 0, number of the fact → what ranks it (7 bytes)
//	vectors  origin, number of the fact → model's tag, scale, a byte for each number, four bits for a passage
//	sketches origin, number of the fact / 60 → for each of these: rest (1 byte), model's tag, 1024 bits
//
// Documents are indexed in three more buckets:
//
//	documents      source, name → stamp, and the numbers of its passages (JSON)
//	passages       number → passage (JSON, compressed)
//	passage words  source, group of passages, term → postings (2 bytes each)
//
// A message of the bot holds the ids of the people whom it answers, and is deleted when one of them is forgotten.
// Unreadable records are skipped and logged once; they block nothing.
//
// Entries and heads are encoded as fields, which are several times faster than JSON: a tag byte, the length as uvarint,
// the bytes. Unknown tags are skipped. Ids that are numbers are uvarints. Ids stay known after their entries are
// deleted, so that a message that is delivered again is not stored twice. They stay under their original path when a
// place moves. Ids of 200 bytes and more are stored as a hash.
//
// The words of a fact are stored below its origin: a search reads only the places that the asker can see, and those
// above them. Words are stemmed by the snowball stemmers that bleve uses. Scripts without spaces are indexed by pairs
// of letters, and by Han characters.
//
// Vectors are derived: a fact is saved without waiting for one, and gets it in the background (see Embedder). A search
// compares the sketches of all visible facts with that of the text, bit by bit, then the vectors of the nearest 700.
//
// # Writing
//
// One goroutine writes. It runs all jobs that wait in one transaction with one sync. A job that fails is removed from
// it and does not fail the others. A single job does not wait for others, as it would with bbolt's own Batch. If the
// disk is full, writes fail with core.ErrFull until there is space again.
package memory
