package quota

// Sentence is the reason as one sentence for people; names gives a job's name.
func (r Reason) Sentence(names func(JobID) string) string { return string(r.Code) }

// Sentence is the decision as one sentence for people; names gives a job's name.
func (d Decision) Sentence(names func(JobID) string) string { return string(d.Kind) }
