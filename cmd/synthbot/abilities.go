package main

// abilities is the list of all plugins that this program holds, in the order in
// which they are made.
var abilities = []ability{}
