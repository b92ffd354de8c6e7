// Package simulation replays a trace of jobs under a policy, on the world of
// package scenario, and says what came of it: a summary of exact figures, the
// events one by one, and a page to look at.
//
// What decides anything about jobs may not enter here, nor what knows how a
// command line looks.
package simulation
