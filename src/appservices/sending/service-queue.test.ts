import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { Appservice } from '../../appservice-registry/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import { createLogger, silentLogger } from '../../kernel/observability/index.ts';
import { appserviceMigrations } from '../migrations.ts';
import { deleteOutboxUpTo, insertOutbox, readOutbox, readQueue } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import { ServiceQueue, type ServiceQueueDeps } from './service-queue.ts';

describe('ServiceQueue', () => {
  const runTurns = async () => {
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  };

  /** Opens a queue whose service answers with `status()`, with one pending transaction. */
  function openQueue(status: () => number) {
    const clock = manualClock();
    const attempts: string[] = [];
    const client = {
      send: async (_service: Appservice, { path, body }: { path: string; body: string }) => {
        attempts.push(`${path} ${body}`);
        return { status: status(), text: '' };
      },
    };
    const service = { id: 'irc' } as Appservice;
    const deps = { clock, client, log: silentLogger } as unknown as ServiceQueueDeps;
    return { clock, attempts, queue: new ServiceQueue(service, deps, { txn_id: 1, body: '{}' }) };
  }

  it('sends a refused transaction again after exactly a second when the service itself sends a request meanwhile', async () => {
    const { clock, attempts, queue } = openQueue(() => 500);
    queue.wake();
    for (const expected of [1, 2, 3]) {
      await runTurns();
      // The server calls `retryNow` at each request of the service.
      queue.retryNow();
      await runTurns();
      assert.equal(attempts.length, expected);
      clock.advance(1_000);
    }
    await queue.stop();
  });

  it('repeats a refused transaction unchanged for days, at least every 5 minutes', async () => {
    const { clock, attempts, queue } = openQueue(() => 502);
    queue.wake();
    await runTurns();
    const fiveMinutes = 5 * 60_000;
    for (let passed = 0; passed < 3 * 24 * 60 * 60_000; passed += fiveMinutes) {
      const before = attempts.length;
      // The queue waits in two steps: first a second, which a request of the service does not shorten, then the rest.
      for (const part of [1_000, fiveMinutes - 1_000]) {
        clock.advance(part);
        await runTurns();
      }
      assert.ok(attempts.length > before, `no attempt in the 5 minutes after ${passed} ms`);
    }
    assert.deepEqual([...new Set(attempts)], ['/_proto/app/v1/transactions/1 {}']);
    await queue.stop();
  });
});

forSelectedDatabases(import.meta.url, (open) => {
  const service = {
    id: 'irc',
    ownsUser: () => true,
    registration: { receivesDeviceChanges: true },
  } as unknown as Appservice;
  const failure = new Error('the database is overloaded');

  /**
   * Opens a queue with an entry for a to-device message.
   * @param failing the step that fails once: `acknowledge` deletes the sent message, the others are steps of the database
   */
  async function openWithMessage(
    failing: 'acknowledge' | 'before the commit' | 'after the commit' | 'read',
    answers = [200],
  ) {
    const database = await open(appserviceMigrations);
    const entry = { service_id: 'irc', position: 1, kind: 'to-device', subject: '@irc_a:test A' } as const;
    await database.transaction<AppserviceTables, void>((writer) =>
      insertOutbox(writer, [{ ...entry, event_nid: 0 }]),
    );
    let failures = 1;
    const fails = (step: typeof failing) => step === failing && failures-- > 0;
    const transaction = async (work: Parameters<Database['transaction']>[0]) => {
      if (fails('before the commit')) throw failure;
      const result = await database.transaction(work);
      if (fails('after the commit')) throw failure;
      return result;
    };
    const acknowledged: number[] = [];
    const queues = {
      pending: async () => ({ messages: [JSON.stringify({ type: 'm.x' })] }),
      acknowledge: async (_userId: string, _deviceId: string, position: number) => {
        if (fails('acknowledge')) throw failure;
        acknowledged.push(position);
      },
    };
    const bodies: { id: string; types: unknown; ephemeral: unknown }[] = [];
    const client = {
      send: async (_service: Appservice, { path, body }: { path: string; body: string }) => {
        const { to_device: messages, ephemeral } = JSON.parse(body) as Record<string, { type: string }[]>;
        bodies.push({ id: path.split('/').at(-1)!, types: messages?.map(({ type }) => type), ephemeral });
        return { status: answers.shift() ?? 200, text: '' };
      },
    };
    const typing = failing === 'read' ? [] : [{ type: 'm.typing' }];
    const clock = manualClock();
    const levels: string[] = [];
    const destination = { write: (line: string) => void levels.push(JSON.parse(line).level) };
    const log = createLogger({ level: 'debug', destination });
    let reads = 0;
    const reader = () => {
      reads++;
      if (fails('read')) throw failure;
      return database.reader<AppserviceTables>();
    };
    const queue = new ServiceQueue(
      service,
      {
        clock,
        client,
        queues,
        log,
        database: { reader, transaction },
        keyCounts: { get: async () => ({ oneTimeKeyCounts: {}, unusedFallbackKeyTypes: [] }) },
        takeEphemeral: () => typing.splice(0),
      } as unknown as ServiceQueueDeps,
      undefined,
    );
    return { database, clock, queue, bodies, acknowledged, levels, reads: () => reads };
  }

  for (const failing of ['before the commit', 'after the commit', 'acknowledge'] as const) {
    it(`sends each entry once when a step fails once (${failing})`, async () => {
      const { database, clock, queue, bodies, acknowledged } = await openWithMessage(failing);
      const reader = database.reader<AppserviceTables>();
      queue.wake();
      await eventually('the accepted transaction', async () => {
        clock.advance(1_000);
        return (await readQueue(reader, 'irc'))?.body === null;
      });
      await queue.stop();
      assert.deepEqual(bodies, [{ id: '1', types: ['m.x'], ephemeral: [{ type: 'm.typing' }] }]);
      assert.deepEqual(acknowledged, [1]);
      assert.deepEqual(await readOutbox(reader, 'irc', 9), []);
    });
  }

  it('logs a warning about a failure of the database, and a second warning about a refusal by the service after the queue was empty', async () => {
    const { database, clock, queue, levels, reads } = await openWithMessage('read', [500]);
    const entry = { service_id: 'irc', kind: 'to-device', subject: '@irc_a:test A', event_nid: 0 } as const;
    const add = (position: number) =>
      database.transaction<AppserviceTables, void>((writer) =>
        insertOutbox(writer, [{ ...entry, position }]),
      );
    await database.transaction<AppserviceTables, void>((writer) => deleteOutboxUpTo(writer, 'irc', 1));
    queue.wake();
    await eventually('an attempt after the failure', () => {
      clock.advance(1_000);
      return reads() === 2;
    });
    await add(2);
    queue.wake();
    await eventually('the accepted transaction', async () => {
      clock.advance(1_000);
      return (await readQueue(database.reader<AppserviceTables>(), 'irc'))?.body === null;
    });
    await queue.stop();
    // The failure of the database, the refusal by the service, and the accepted transaction.
    assert.deepEqual(levels, ['warn', 'warn', 'info']);
  });
});
