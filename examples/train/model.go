package main

import (
	"math"
	"math/rand/v2"
)

// sample is one labelled point.
type sample struct {
	x []float64
	y float64 // 0 or 1
}

// makeData makes this worker's part of the samples: points around the origin,
// labelled by a plane that the seed hides, with some of the labels wrong.
func makeData(s settings) []sample {
	const mislabelled = 0.05
	random := rand.New(rand.NewPCG(s.seed, 0))
	plane := gaussian(random, s.features)
	var part []sample
	for i := range s.samples {
		x := gaussian(random, s.features)
		above := dot(plane, x) > 0
		if random.Float64() < mislabelled {
			above = !above
		}
		if i%s.workers != s.rank {
			continue
		}
		point := sample{x: x}
		if above {
			point.y = 1
		}
		part = append(part, point)
	}
	return part
}

func gaussian(random *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = random.NormFloat64()
	}
	return v
}

// model is a logistic regression.
type model struct {
	Weights []float64 `json:"weights"`
	Bias    float64   `json:"bias"`
}

func newModel(features int) model { return model{Weights: make([]float64, features)} }

// probability is how sure the model is that x is labelled 1.
func (m *model) probability(x []float64) float64 {
	return 1 / (1 + math.Exp(-dot(m.Weights, x)-m.Bias))
}

// descend takes one step down the gradient of the batch's cross-entropy.
func (m *model) descend(batch []sample, rate float64) {
	gradient := make([]float64, len(m.Weights))
	var biasGradient float64
	for _, s := range batch {
		off := m.probability(s.x) - s.y
		for i, x := range s.x {
			gradient[i] += off * x
		}
		biasGradient += off
	}
	scale := rate / float64(len(batch))
	for i := range m.Weights {
		m.Weights[i] -= scale * gradient[i]
	}
	m.Bias -= scale * biasGradient
}

// evaluate returns the mean cross-entropy and the fraction labelled rightly.
func (m *model) evaluate(data []sample) (loss, accuracy float64) {
	const tiny = 1e-12 // keeps the logarithm finite
	right := 0
	for _, s := range data {
		p := m.probability(s.x)
		loss -= s.y*math.Log(p+tiny) + (1-s.y)*math.Log(1-p+tiny)
		if (p > 0.5) == (s.y == 1) {
			right++
		}
	}
	n := float64(len(data))
	return loss / n, float64(right) / n
}

func dot(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
