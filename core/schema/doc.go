// Package schema compiles JSON Schemas, validates decoded JSON against them and rewrites them.
// It knows nothing of actions: package action says what a schema is for.
//
// What it implements is JSON Schema, draft 2020-12, formats asserted, integers exact, patterns in RE2.
// $defs and $ref work inside of a schema; nothing is ever loaded, and a
// reference that leads out of the schema is refused, as are schemas over 64 KiB
// or 64 levels. Defaults are filled in at properties, through $ref, allOf and
// items, and nowhere else.
//
// Of the standard's own test vectors these fail, by file and group:
//
//	refRemote (all); defs: validate definition against metaschema; ref: remote
//	ref, containing refs itself; dynamicRef: strict-tree schema, guards against
//	misspelled properties, tests for implementation dynamic anchor and reference
//	link, $ref and $dynamicAnchor are independent of order (both), $ref to
//	$dynamicRef finds detached $dynamicAnchor; vocabulary: schema that uses
//	custom metaschema with no validation vocabulary
//		because they would have to be loaded
//	format (all); content: validation of string-encoded content based on media
//	type, of binary string-encoding, of binary-encoded media type documents
//	(both)
//		because formats and contents are asserted, not only annotated
//	format/idn-email; format/idn-hostname
//		because the library knows no names beyond ASCII, or not all of their rules
package schema
