// Package filter refuses messages with unwelcome words or links, as the rules of the
// configuration say.
//
// Moderators and admins may write what they like. Everyone else's messages are checked
// when they come in, when they are edited, and once more before they are answered. A
// message that breaks several rules gets the strictest of their actions. Its author gets
// a reply at most every ten minutes, and at the same times it is logged and moderators are
// notified.
//
// # How text is read
//
// Words are runs of letters, digits and their marks, whatever their case. In scripts
// without spaces between words each letter is a word, and so is each emoji. Invisible
// characters are left out, and everything else separates words. Letters with accents are
// as Unicode composes them; a letter followed by a separate accent is another letter.
//
// A link has a scheme, or it is a bare host that chat clients turn into a link: its ending
// is one of the Internet's common ones, or a rule names it. Hosts are read as browsers
// read them: user names before an @ are skipped, percent signs are decoded, full stops of
// other scripts are dots.
package filter
