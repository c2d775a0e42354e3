import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { AccountDataKey } from '../src/account-data/index.ts';
import type { Writer } from '../src/kernel/database/index.ts';
import { type AnyStream, LocalStreams, type Publish, Stream } from '../src/kernel/streams/index.ts';
import type { PresenceFact } from '../src/presence/index.ts';
import type { JsonValue } from '../src/protocol/index.ts';
import type { UserRoom } from '../src/room-engine/index.ts';
import type { TypingChange } from '../src/typing/index.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';

const text = fc.string();
const user = { userId: text };
const device = { userId: text, deviceId: text };
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const record = <T extends object>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(fields, { noNullPrototype: true });
const mapOf = <T>(value: fc.Arbitrary<T>) =>
  fc.array(fc.tuple(text, value)).map((entries) => new Map(entries));

const presenceFields = {
  changes: mapOf(
    record({
      presence: fc.constantFrom('online' as const, 'unavailable' as const, 'offline' as const),
      statusMsg: optional(text),
      lastActive: fc.nat(),
      currentlyActive: fc.boolean(),
    }),
  ),
  rooms: mapOf(fc.array(text)),
};

/** Facts of each stream of a server. The tests of `RoomFactCodec` cover the stream of rooms. */
const facts: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  account_data: record<AccountDataKey>({ userId: text, roomId: optional(text), type: text }),
  accounts: fc.oneof(
    record({ kind: fc.constant('registered'), userId: text, isGuest: fc.boolean() }),
    record({
      kind: fc.constant('deactivated'),
      userId: text,
      erase: fc.boolean(),
      byAdmin: fc.boolean(),
    }),
    record({ kind: fc.constant('reactivated'), userId: text }),
  ),
  sessions: record(user),
  device_lists: record(user),
  device_keys: record(device),
  user_signatures: record({ userId: text, targetUserId: text }),
  erased_users: text,
  presence: fc.oneof(
    record<PresenceFact>(presenceFields),
    record<PresenceFact>({
      ...presenceFields,
      routed: mapOf(fc.array(text)).filter(({ size }) => size > 0),
    }),
  ),
  profiles: record({ userId: text, field: text }),
  push_rules: record(user),
  receipts: record({
    roomId: text,
    userId: text,
    type: fc.constantFrom('m.read', 'm.read.private'),
    threadId: optional(text),
    eventId: text,
    stream: optional(fc.maxSafeInteger()),
    ts: fc.maxSafeInteger(),
  }),
  room_removals: fc.oneof(
    record({
      kind: fc.constant('forgotten'),
      userId: text,
      room: record<UserRoom>({
        roomId: text,
        roomNid: fc.nat(),
        membership: fc.constantFrom('leave' as const, 'ban' as const),
        eventNid: fc.nat(),
        stream: fc.nat(),
        forgotten: fc.boolean(),
      }),
    }),
    record({ kind: fc.constant('pruned'), eventNids: fc.array(fc.nat()) }),
    record({ kind: fc.constant('pruned'), eventNids: fc.array(fc.nat()), roomId: text }),
    record({ kind: fc.constant('purged'), roomId: text, roomNid: fc.nat() }),
  ),
  thread_subscriptions: record(user),
  to_device: record(device),
  typing: record<TypingChange>({ roomId: text, userId: text, typing: fc.boolean() }),
};

type Work<S, T> = (writer: Writer<S>, publish: Publish) => Promise<T>;

describe('codecs of streams', () => {
  const streams = new Map<string, AnyStream>();
  const { subscribe } = Stream.prototype;
  const { write } = LocalStreams.prototype;
  let server: TestServer;
  before(async () => {
    // Finds streams when the server subscribes to them or publishes on them: it subscribes to nearly all at its start,
    // and publishes on the stream of profiles when a user registers.
    Stream.prototype.subscribe = function (this: AnyStream, listener) {
      streams.set(this.name, this);
      subscribe.call(this, listener);
    };
    LocalStreams.prototype.write = function <S, T>(this: LocalStreams, work: Work<S, T>): Promise<T> {
      return write.call<LocalStreams, [Work<S, T>], Promise<T>>(this, (writer, publish) =>
        work(writer, (stream, fact) => {
          streams.set(stream.name, stream);
          return publish(stream, fact);
        }),
      );
    };
    server = await startTestServer({ database: 'sqlite' });
    await server.register('alice');
    Stream.prototype.subscribe = subscribe;
    LocalStreams.prototype.write = write;
  });
  after(() => server.stop());

  it('covers all streams of a server', () => {
    assert.deepEqual([...streams.keys()].sort(), [...Object.keys(facts), 'rooms'].sort());
  });

  for (const [name, fact] of Object.entries(facts)) {
    it(`decodes each encoded fact of the stream ${name} to an equal fact`, async () => {
      const { codec } = streams.get(name)!;
      await fc.assert(
        fc.asyncProperty(fact, async (original) => {
          const json = JSON.parse(JSON.stringify(codec.encode(original))) as JsonValue;
          assert.deepEqual(await codec.decode(json), original);
        }),
      );
    });
  }
});
