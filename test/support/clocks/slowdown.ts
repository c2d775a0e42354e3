/** Returns the CPU time of this thread in milliseconds. */
export function threadTime(): number {
  // Brings the time of the thread up to date: otherwise it is some milliseconds old.
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** A text whose parsing is the work that is timed. */
const sample = JSON.stringify(
  Array.from({ length: 2_000 }, (_, index) => ({ index, name: `name ${index}` })),
);

/**
 * CPU time of the fastest run of `sampleTime` until now, in milliseconds. Begins with the time on an idle machine with
 * AMD EPYC processors at about 4 GHz, for which the limits of CPU time in tests are meant. A slower machine therefore
 * counts as busy.
 */
let fastest = 0.8;

/** Whether `sampleTime` has been compiled. */
let isWarm = false;

function sampleTime(): number {
  const before = threadTime();
  for (let times = 0; times < 3; times++) JSON.parse(sample);
  const time = threadTime() - before;
  fastest = Math.min(fastest, time);
  return time;
}

/** Measures the speed of the machine once, so that `slowdown` can compare a later speed with it. */
export function noteSpeed(): void {
  sampleTime();
}

/**
 * Returns how many times longer the same work takes now than in its fastest run, at least 1. On a busy machine, threads
 * share the caches and the units of a processor, so that the CPU time of the same work is several times longer.
 */
export function slowdown(): number {
  const rounds = isWarm ? 9 : 50;
  isWarm = true;
  const times = Array.from({ length: rounds }, sampleTime).sort((one, other) => one - other);
  return Math.max(1, times[Math.floor(rounds / 2)]! / fastest);
}
