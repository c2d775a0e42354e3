import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { type Database, migrate, openDatabase } from '../database/index.ts';
import { createLogger, createMetrics, silentLogger } from '../observability/index.ts';
import { jsonFacts, LocalStreams, Stream, streamMigrations } from './index.ts';

describe('PendingWatch', () => {
  const stream = new Stream<string>('notes', jsonFacts());
  let database: Database;
  before(async () => {
    database = await openDatabase({ kind: 'sqlite', path: ':memory:' }, { log: silentLogger });
    await migrate(database, streamMigrations);
  });
  after(() => database.close());

  async function openStreams() {
    const clock: ManualClock = manualClock();
    const errors: Record<string, unknown>[] = [];
    const write = (line: string) => void errors.push(JSON.parse(line));
    const log = createLogger({ level: 'error', destination: { write } });
    const metrics = await createMetrics();
    const streams = await LocalStreams.open({ database, clock, log, metrics });
    const reserve = () => streams.reserving((take) => take(stream));
    const pendingSeconds = async () => {
      const [, value] = /^server_stream_pending_seconds (\S+)$/m.exec(await metrics.render()) ?? [];
      return Number(value);
    };
    return { clock, errors, streams, reserve, pendingSeconds };
  }

  it('logs a position as an error when it has been pending for ten seconds, and only once', async () => {
    const { clock, errors, reserve } = await openStreams();
    const first = reserve();
    clock.advance(6_000);
    const second = reserve();
    clock.advance(3_999);
    assert.equal(errors.length, 0);
    clock.advance(1);
    assert.deepEqual(
      errors.map(({ positions, stream: name, pendingMs }) => [positions, name, pendingMs]),
      [[[first.position], 'notes', 10_000]],
    );
    clock.advance(60_000);
    assert.deepEqual(
      errors.map(({ positions }) => positions),
      [[first.position], [second.position]],
    );
    first.abandon();
    reserve().abandon();
    clock.advance(60_000);
    assert.equal(errors.length, 2);
  });

  it('logs many pending positions in one line, with their number and ten of the positions', async () => {
    const { clock, errors, reserve } = await openStreams();
    const reservations = Array.from({ length: 30 }, reserve);
    reservations[3]?.complete('in time');
    clock.advance(10_000);
    assert.deepEqual(
      errors.map(({ count }) => count),
      [29],
    );
    assert.deepEqual(
      errors.map(({ positions }) => (positions as number[]).length),
      [10],
    );
  });

  it('logs no position that settles in time', async () => {
    const { clock, errors, streams, reserve } = await openStreams();
    for (let round = 0; round < 10; round++) {
      const pending = reserve();
      clock.advance(9_999);
      pending.complete('in time');
      streams.announce(stream, 'at once');
    }
    clock.advance(60_000);
    assert.deepEqual(errors, []);
  });

  it('reports the age of the oldest pending position as server_stream_pending_seconds', async () => {
    const { clock, reserve, pendingSeconds } = await openStreams();
    assert.equal(await pendingSeconds(), 0);
    const first = reserve();
    clock.advance(1_500);
    const second = reserve();
    clock.advance(1_000);
    assert.equal(await pendingSeconds(), 2.5);
    first.abandon();
    assert.equal(await pendingSeconds(), 1);
    second.abandon();
    assert.equal(await pendingSeconds(), 0);
  });
});
