package batchapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-io/bursar/internal/document"
	"github.com/bursar-io/bursar/internal/job"
	"github.com/bursar-io/bursar/internal/resource"
)

// Values of AWS's enumerations that have one value here.
const (
	sageMakerTraining = "SAGEMAKER_TRAINING"
	trainingJobARN    = "TrainingJobArn"
)

// enabled and disabled are also the words for switches other than states.
const (
	enabled  = string(resource.Enabled)
	disabled = string(resource.Disabled)
)

// millis is a time in milliseconds since 1970, as AWS Batch sends all times;
// 0 for the zero time, which is left out of replies.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// double is a whole number that AWS's model has as a double: 9 reads 9.0.
type double int64

// MarshalJSON encodes the number with a fraction.
func (d double) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendInt(nil, int64(d), 10), ".0"...), nil
}

// weightFactor is a number of ten-thousandths that AWS's model has as a float:
// 1250 reads 0.125.
type weightFactor int64

// MarshalJSON encodes the number with a fraction of as few digits as it needs.
func (w weightFactor) MarshalJSON() ([]byte, error) {
	whole, rest := int64(w)/resource.DefaultWeightFactor, int64(w)%resource.DefaultWeightFactor
	digits := strings.TrimRight(fmt.Sprintf("%04d", rest), "0")
	if digits == "" {
		digits = "0"
	}
	return fmt.Appendf(nil, "%d.%s", whole, digits), nil
}

// limit is a capacity limit.
type limit struct {
	Max  int64  `json:"maxCapacity"`
	Unit string `json:"capacityUnit"`
}

func limitsOf(limits []resource.Limit) []limit {
	wire := make([]limit, len(limits))
	for i, l := range limits {
		wire[i] = limit{Max: l.Max, Unit: l.Unit}
	}
	return wire
}

// takeLimits takes capacityLimits: nil if they are absent.
func takeLimits(in document.Object) []resource.Limit {
	members := in.Objects("capacityLimits")
	if members == nil {
		return nil
	}
	limits := make([]resource.Limit, len(members))
	for i, member := range members {
		limits[i] = resource.Limit{
			Unit: member.NeededText("capacityUnit"),
			Max:  int64(member.Integer("maxCapacity")),
		}
		if strings.Contains(limits[i].Unit, "/") { // a part of an instance, for which AWS has no word
			member.Fail("%s is unknown capacity unit. Use an instance type such as ml.g5.xlarge as capacityUnit.", limits[i].Unit)
		}
	}
	return limits
}

// usage is an amount of one instance type.
type usage struct {
	Unit     string `json:"capacityUnit"`
	Quantity double `json:"quantity"`
}

func usagesOf(amounts []job.Amount) []usage {
	wire := make([]usage, len(amounts))
	for i, a := range amounts {
		wire[i] = usage{Unit: a.Unit, Quantity: double(a.Quantity)}
	}
	return wire
}

// takeState takes a state that is ENABLED when absent.
func takeState(in document.Object) resource.State {
	if !in.Has("state") {
		return resource.Enabled
	}
	return resource.State(in.Text("state"))
}

// takeStateChange takes a state that does not change when absent.
func takeStateChange(in document.Object) *resource.State {
	if !in.Has("state") {
		return nil
	}
	state := resource.State(in.Text("state"))
	return &state
}

// takeOneOf takes a string that must be there and be one of the values.
func takeOneOf(in document.Object, field string, values ...string) string {
	got := in.NeededText(field)
	for _, value := range values {
		if got == value {
			return got
		}
	}
	in.Fail("%s is %s; use %s", in.At(field), document.Quote(got), strings.Join(values, " or "))
	return got
}

// tagsOf are a thing's tags; there is an object even when there are none.
func tagsOf(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return tags
}
