// Package standard is the plugin of the standard actions of action plans: display
// shows data, notify tells the person in private or the admins, wait pauses,
// confirm asks, api_call asks a configured HTTP API, and speak says something as
// a voice message. Which of them there are, the configuration says; display
// alone is on by itself.
//
// Actions that drive a page (navigate, click, input and their like) are not here:
// they come from a program that has a page, through a blueprint or a tool server.
package standard
