// Package blueprint is the plugin that makes actions of agent blueprints: files
// ai-tools.json that say what tools an agent has, and how it is asked. It also
// writes the bot's own catalogue as such a file. It is not for servers that tell
// their tools themselves (see the plugin for tool servers).
//
// # The file
//
//	{
//	  "name": "bank", "type": "agent", "version": "1.2.0", "description": "…",
//	  "endpoint": "https://bank.example",              the agent's address; the configuration goes before it
//	  "endpoints": {"invoke": {"path": "/invoke"}},    where tools are called, below it
//	  "meta": {"compliance": {…}, "security": {"rateLimits": {"perMinute": 60}, "authRequired": true}},
//	  "capabilities": {"tools": [{
//	    "name": "invoices.list", "title": "…", "description": "…",
//	    "inputSchema": {…}, "outputSchema": {…},        JSON Schema, draft 2020-12, with $defs
//	    "annotations": {"readOnlyHint": true, "idempotentHint": true, "destructiveHint": false},
//	    "examples": [{"scenario": "…", "payload": {…}}],
//	    "security": {"permission": "moderators", "requiresConfirmation": true},
//	    "endpoint": {"path": "/invoices/{id}", "method": "GET"}
//	  }]}
//	}
//
// Of a tool name and inputSchema are needed. Where a file has name, type, version,
// description, endpoint, endpoints, compliance or security within meta or metadata,
// they are read there. $defs of the whole file serve all its tools. Everything but the tools is the
// envelope; what is not known in it is kept. In an outputSchema, "x-display" says
// how the output is shown: a format of the action display, or none.
//
// # What becomes of a tool
//
// Its name is the action's (getBalance becomes get_balance), behind the prefix
// that is configured. The inputSchema is the schema tier. The description's first
// sentence is the brief; all of it, and the examples, are the examples tier; where
// there is no example, one is made from the schema. What the tool returns must
// match the outputSchema.
//
// Nothing in a file opens anything. A tool that is not marked as read-only has
// effects outside: it is for admins, and asks first, unless the configuration says
// else; what a file says of permission and confirmation can only be stricter.
//
// # How a tool is called
//
// By HTTP, POST to the invoke endpoint:
//
//	{"tool": "invoices.list", "input": {…}, "context": {"userId": "…", "sessionId": "…"}}
//	{"success": true, "output": …}    or    {"success": false, "error": {"code": "…", "message": "…"}}
//
// context is there only where the configuration says so. A tool with an endpoint
// of its own gets its input alone: in the path's braces, none of which may stay
// empty, and the rest as query (GET, DELETE) or JSON body; what it answers is the
// output. A local command gets the first form on its standard input, and answers
// on its standard output in either. Text that is not JSON is a string.
package blueprint
