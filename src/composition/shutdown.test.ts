import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createLogger } from '../kernel/observability/index.ts';
import { Shutdown } from './shutdown.ts';

it('Shutdown runs its steps once, in reverse order, and continues after a step that fails', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'error', destination: { write: (line) => void lines.push(line) } });
  const shutdown = new Shutdown(log);
  const stopped: string[] = [];
  shutdown.add('database', async () => void stopped.push('database'));
  shutdown.add('jobs', () => Promise.reject(new Error('no')));
  shutdown.add('http', () => void stopped.push('http'));
  await shutdown.run();
  await shutdown.run();
  assert.deepEqual(stopped, ['http', 'database']);
  assert.equal(lines.length, 1);
  assert.equal(JSON.parse(lines[0]!).part, 'jobs');
});
