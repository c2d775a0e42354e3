/**
 * Measures the processor time of a call of a module: one with the time limit of every callback, which interrupts
 * endless loops, and one without that limit. With `--json`, prints the figures for the bench.
 */
import { pino } from 'pino';
import { systemClock } from '../../src/kernel/clock.ts';
import { ModuleCalls } from '../../src/modules/calls/module-calls.ts';

const calls = new ModuleCalls({ clock: systemClock, log: pino({ enabled: false }), metrics: undefined });
const callback = () => 'allow';

/** Returns CPU microseconds per call. */
async function cpuOf(call: () => unknown): Promise<number> {
  for (let number = 0; number < 500; number++) await call();
  const count = 5_000;
  const before = process.cpuUsage();
  for (let number = 0; number < count; number++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

const running = { module: 'bench', callback: 'checkEvent' };
const figures = {
  limited: await cpuOf(() => calls.run(running.module, running.callback, callback)),
  unlimited: await cpuOf(() => calls.context.run(running, callback)),
};
if (process.argv.includes('--json')) console.log(JSON.stringify(figures));
else console.table(figures);
