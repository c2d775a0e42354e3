/** Returns a function that returns numbers below a bound, the same ones in each run: a linear congruential generator. */
export function randomNumbers(): (below: number) => number {
  let seed = 7;
  return (below) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * below);
  };
}
