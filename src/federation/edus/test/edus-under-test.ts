import type { OpenDatabase } from '../../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../../kernel/observability/index.ts';
import { RateLimiter } from '../../../kernel/rate-limits/index.ts';
import { Presence, presenceMigrations } from '../../../presence/index.ts';
import type { JsonObject } from '../../../protocol/index.ts';
import { Receipts, receiptMigrations } from '../../../receipts/index.ts';
import { Typing } from '../../../typing/index.ts';
import type { EphemeralEdu } from '../../sender/edus/pending-edus.ts';
import { EduHandlers } from '../edu-handlers.ts';
import { ephemeralEduHandlers } from '../ephemeral-edu-handlers.ts';
import { PresenceEduSender } from '../presence-edu-sender.ts';
import { ReceiptEduSender } from '../receipt-edu-sender.ts';
import { TypingEduSender } from '../typing-edu-sender.ts';

/** A remote server with users in the room. */
export const remoteServer = 'far.example';
export const dora = `@dora:${remoteServer}`;
export const eve = '@eve:evil.example';

/** Waits 20 turns of the event loop, which is longer than the work after an EDU or a change takes. */
export async function untilIdle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
}

/** Opens a room with users of three servers, the handlers of their EDUs and the senders of EDUs to them. */
export async function startEdus(
  open: OpenDatabase,
  { enabled = true as boolean | 'untracked', transactionsPerSecond = 50 } = {},
) {
  const fixture = await RoomsUnderTest.open(open, [...receiptMigrations, ...presenceMigrations]);
  const { engine, streams, clock, database, caches } = fixture;
  const typing = new Typing({ streams, clock, caches, roomStream: engine.stream });
  const markers = { find: async () => undefined, set: async () => undefined };
  const receipts = new Receipts({ caches, database, streams, clock, engine, markers });
  const limiter = new RateLimiter({ per_second: 1e6, burst_count: 1e6 }, clock);
  const presence = new Presence({ database, streams, clock, engine, limiter, log: silentLogger }, enabled);
  const shared = { ...fixture.rooms, engine, typing, receipts, presence, clock };
  const edus = new EduHandlers(silentLogger, [ephemeralEduHandlers(shared)]);
  const sent: { to: string[]; edu: EphemeralEdu; lazy: boolean }[] = [];
  const sender = {
    sendEdu: (to: Iterable<string>, edu: EphemeralEdu, { lazy = false } = {}) => {
      const remoteServers = [...to].filter((server) => server !== 'test');
      if (remoteServers.length > 0) sent.push({ to: remoteServers, edu, lazy });
    },
  };
  const senderDeps = { ...shared, serverName: 'test', sender, log: silentLogger, transactionsPerSecond };
  const senders = [new TypingEduSender(senderDeps), new ReceiptEduSender(senderDeps)];
  new PresenceEduSender(senderDeps);
  const roomId = await fixture.room(alice, bob, dora, eve);
  const handle = (origin: string, type: string, content: unknown) =>
    edus.dispatch(origin, [{ edu_type: type, content: content as JsonObject }]);
  return { fixture, clock, typing, receipts, presence, edus, handle, sent, roomId, senders };
}
