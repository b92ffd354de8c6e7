// Package scenario lets policies be tried before they are rolled out: it reads
// policy files and scenario files, runs them on the engine (package quota) and
// the life of jobs (package job) of the server, in virtual time with simulated
// workers, and says which expectations did not hold and why.
//
// It decides nothing itself: no second scheduler, no arithmetic of lending, no
// clock of the machine and no goroutine may enter here.
package scenario
