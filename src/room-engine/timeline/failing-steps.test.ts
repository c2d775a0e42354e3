import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { UnreliableDatabase } from '../../../test/support/databases/unreliable-database.ts';
import { ann, ben, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { Database } from '../../kernel/database/index.ts';
import { BackgroundSigner } from '../../kernel/signing/index.ts';
import { LocalStreams, type Reserve, Sequence } from '../../kernel/streams/index.ts';
import { PreparedCurrentState } from '../placement/states/prepared-current-state.ts';
import { StateResolver } from '../placement/states/state-resolver.ts';
import { AuthEdges } from '../state/auth-edges.ts';
import { GroupChain } from '../state/group-chain.ts';
import { StateGroups } from '../state/state-groups.ts';
import { EventStore } from './event-store.ts';
import { EventWriter } from './event-writer.ts';
import { InMemoryHead } from './in-memory-head.ts';
import { WritableHead } from './writable-head.ts';
import { WritableHeads } from './writable-heads.ts';
import { WriteBatch } from './write-batch.ts';

/** The methods that run between the reservation of a position and the end of the commit, and could throw. */
const steps: readonly (readonly [object, readonly string[]])[] = [
  [Sequence.prototype, ['next']],
  [GroupChain.prototype, ['advance']],
  [PreparedCurrentState.prototype, ['apply']],
  [WritableHead.prototype, ['append', 'setEntry', 'setExtremities', 'redact']],
  [InMemoryHead.prototype, ['remember', 'revise']],
  [WritableHeads.prototype, ['register']],
  [StateResolver.prototype, ['remember']],
  [EventWriter.prototype, ['stage']],
  [EventStore.prototype, ['add', 'beginRevision']],
  [StateGroups.prototype, ['add']],
  [AuthEdges.prototype, ['add']],
  [BackgroundSigner.prototype, ['sign', 'poll']],
  [WriteBatch.prototype, ['add', 'statements']],
];

/** Makes one call fail, and records the highest reserved position. */
class Fault {
  /** The name of the method that failed. */
  failed: string | undefined;
  reserved = 0;
  #isArmed = false;
  #left: number;
  readonly #only: string | undefined;
  readonly #when: 'before' | 'after';
  readonly #restore: (() => void)[] = [];

  /**
   * @param number which call after the first reservation fails, from 1
   * @param when whether the call fails before it does its work, or after that
   * @param only counts calls of this step alone; absent: of all steps
   */
  constructor(fixture: RoomsUnderTest, number: number, when: 'before' | 'after', only?: string) {
    this.#only = only;
    this.#left = number;
    this.#when = when;
    for (const [target, names] of steps) for (const name of names) this.#wrap(target, name);
    this.#wrap(fixture.database, 'batch');
    this.#watchReservations();
  }

  end(): void {
    for (const restore of this.#restore) restore();
  }

  #wrap(target: object, name: string): void {
    const methods = target as Record<string, (...args: unknown[]) => unknown>;
    const original = methods[name];
    assert.ok(original, name);
    const fault = this;
    methods[name] = function (this: unknown, ...args: unknown[]) {
      const fails = fault.#fails(name);
      if (fails && fault.#when === 'before') throw new Error(`${name} fails`);
      const result = original.apply(this, args);
      if (!fails) return result;
      if (!(result instanceof Promise) || name === 'stage') throw new Error(`${name} fails`);
      return result.then(() => {
        throw new Error(`${name} fails`);
      });
    };
    this.#restore.push(() => {
      methods[name] = original;
    });
  }

  #fails(name: string): boolean {
    if (!this.#isArmed || this.failed !== undefined || (this.#only ?? name) !== name) return false;
    this.#left--;
    if (this.#left > 0) return false;
    this.failed = name;
    return true;
  }

  #watchReservations(): void {
    const { reserving } = LocalStreams.prototype;
    const fault = this;
    LocalStreams.prototype.reserving = function <T>(this: LocalStreams, work: (reserve: Reserve) => T): T {
      return reserving.call<LocalStreams, [(reserve: Reserve) => T], T>(this, (reserve) =>
        work((stream) => {
          const reservation = reserve(stream);
          fault.#isArmed = true;
          fault.reserved = Math.max(fault.reserved, reservation.position);
          return reservation;
        }),
      );
    };
    this.#restore.push(() => {
      LocalStreams.prototype.reserving = reserving;
    });
  }
}

/** An operation in a room, which may be repeated after it has failed. */
interface Operation {
  readonly roomId: string | undefined;
  run(): Promise<unknown>;
}

type Prepare = (fixture: RoomsUnderTest) => Promise<Operation>;

const entered = async ({ engine }: RoomsUnderTest, room: ReferenceRoom) => {
  await engine.placement.enter(room.room, room.join(alice));
};

/** Places an event of a remote server. */
const placing =
  (make: (room: ReferenceRoom) => readonly string[], version = '10'): Prepare =>
  async (fixture) => {
    const room = new ReferenceRoom(version);
    await entered(fixture, room);
    const eventIds = make(room);
    const { placement } = fixture.engine;
    return {
      roomId: room.roomId,
      run: async () => {
        for (const eventId of eventIds) await placement.place(room.roomId, room.get(eventId));
      },
    };
  };

const operations: Readonly<Record<string, Prepare>> = {
  'sending a message': async (fixture) => {
    const roomId = await fixture.room(alice);
    return { roomId, run: () => fixture.say(alice, roomId, 'hello') };
  },
  'sending a state event': async (fixture) => {
    const roomId = await fixture.room(alice);
    const topic = { type: 'm.room.topic', sender: alice, stateKey: '', content: { topic: 'news' } };
    return { roomId, run: () => fixture.engine.timeline.append(roomId, topic) };
  },
  'redacting a message': async (fixture) => {
    const roomId = await fixture.room(alice);
    const eventId = await fixture.say(alice, roomId, 'hello');
    return { roomId, run: () => fixture.redact(alice, roomId, eventId) };
  },
  'creating a room': async (fixture) => ({ roomId: undefined, run: () => fixture.room(alice) }),
  'placing a message of another server': placing((room) => [room.say(ann)]),
  'placing state of another server': placing((room) => [room.member(ben, 'leave')]),
  'placing state on two sides of a fork': placing((room) => {
    const prev = room.forwardExtremities;
    const [left, right] = [
      room.member('@x:s.example', 'join', { prev }),
      room.member('@y:s.example', 'join', { prev }),
    ];
    return [left, right, room.member(ben, 'leave')];
  }),
  'entering a room': async (fixture) => {
    const room = new ReferenceRoom();
    const join = room.join(alice);
    return { roomId: room.roomId, run: () => fixture.engine.placement.enter(room.room, join) };
  },
  'backfilling events': async (fixture) => {
    const room = new ReferenceRoom();
    const past = [room.say(ann), room.member('@x:s.example', 'join')];
    await entered(fixture, room);
    const { state, authChain } = room.stateAndAuthChain(room.stateBefore(past[0]!));
    await fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]);
    const stateBefore = state.map(({ event }) => event.eventId);
    const older = past.map((eventId, index) => ({
      event: room.get(eventId),
      ...(index === 0 && { stateBefore }),
    }));
    return { roomId: room.roomId, run: () => fixture.engine.placement.backfill(room.roomId, older) };
  },
  'storing outliers of a new room': async (fixture) => {
    const room = new ReferenceRoom();
    const { state, authChain } = room.stateAndAuthChain(room.stateAfter(room.forwardExtremities));
    return {
      roomId: undefined,
      run: () => fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]),
    };
  },
  'storing an out-of-band invite': async (fixture) => {
    const room = new ReferenceRoom();
    const invite = room.get(room.member(alice, 'invite', { sender: ann }));
    return {
      roomId: undefined,
      run: () => fixture.engine.placement.addOutOfBand(room.room, invite, { state: [] }),
    };
  },
  'completing the state of a room': async (fixture) => {
    const room = new ReferenceRoom();
    room.member('@x:s.example', 'join');
    const { event, state, authChain } = room.join(alice);
    const partial = { servers: ['a.example'], from: 'a.example' };
    const essential = state.filter((one) => one.event.type !== 'm.room.member' || one.event.stateKey === ann);
    await fixture.engine.placement.enter(room.room, { event, state: essential, authChain, partial });
    await fixture.engine.placement.addOutliers(room.room, state);
    await fixture.say(alice, room.roomId, 'meanwhile');
    const stateBefore = state.map((one) => one.event.eventId);
    return {
      roomId: room.roomId,
      run: () => fixture.engine.placement.completeState(room.roomId, { stateBefore }),
    };
  },
};

/** The fields of a room's head. */
async function headOf({ engine }: RoomsUnderTest, roomId: string) {
  const head = await engine.heads.get(roomId);
  assert.ok(head);
  const state = [...head.state].map(([key, { eventId }]) => [key, eventId]).sort();
  const ends = head.extremities.map(({ eventId }) => eventId).sort();
  return { state, ends, group: head.chain.id, members: [...head.members].sort(), isPartial: head.isPartial };
}

/** Compares the head in memory with one that is loaded from the disk. */
async function assertHeadAsOnDisk(fixture: RoomsUnderTest, roomId: string): Promise<void> {
  const inMemory = await headOf(fixture, roomId);
  const head = await fixture.engine.heads.get(roomId);
  fixture.engine.heads.abandon(head!);
  assert.deepEqual(inMemory, await headOf(fixture, roomId));
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('a write that fails between the reservation of a position and the commit', () => {
    for (const [name, prepare] of Object.entries(operations)) {
      for (const when of ['before', 'after'] as const) {
        it(`holds up no stream and leaves the room as it is on disk: ${name}, ${when} the step`, async () => {
          const fixture = await RoomsUnderTest.open(open);
          const failed: string[] = [];
          // Each run fails in another step. The order of batches and later events differs from run to run, so the
          // first run counts the calls of `batch` only, and surely fails in one.
          for (let number = 0; ; number++) {
            const operation = await prepare(fixture);
            await fixture.engine.settled();
            const fault = new Fault(fixture, Math.max(1, number), when, number === 0 ? 'batch' : undefined);
            const outcome = await Promise.allSettled([operation.run()]);
            await fixture.engine.settled();
            fault.end();
            assert.equal(fixture.streams.current, fault.reserved, fault.failed);
            if (fault.failed === undefined) {
              assert.equal(outcome[0].status, 'fulfilled');
              break;
            }
            failed.push(fault.failed);
            if (operation.roomId !== undefined && (await fixture.engine.heads.get(operation.roomId)))
              await assertHeadAsOnDisk(fixture, operation.roomId);
            await operation.run();
            await fixture.engine.settled();
            if (operation.roomId !== undefined) {
              const position = await fixture.positionOf(
                await fixture.say(alice, operation.roomId, 'after it'),
              );
              assert.equal(fixture.streams.current, position);
              await assertHeadAsOnDisk(fixture, operation.roomId);
            }
          }
          assert.ok(failed.includes('stage') && failed.includes('batch'), failed.join());
        });
      }
    }

    it('loads the head of the room again only after its committing events have settled', async () => {
      const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let slow: UnreliableDatabase | undefined;
      const wrapDatabase = (database: Database) => (slow = new UnreliableDatabase(database));
      const fixture = await RoomsUnderTest.open(open, [], { wrapDatabase });
      const roomId = await fixture.room(alice);
      slow!.delay = () => {
        begun.resolve();
        return released.promise;
      };
      const first = fixture.say(alice, roomId, 'on its way');
      await begun.promise;
      slow!.delay = () => undefined;
      const fault = new Fault(fixture, 1, 'before');
      await assert.rejects(fixture.say(alice, roomId, 'fails'), /fails/);
      fault.end();
      const next = fixture.say(alice, roomId, 'comes after it');
      released.resolve();
      const { event } = (await fixture.engine.events.getById(await next))!;
      assert.deepEqual(event.prevEventIds, [await first]);
      await assertHeadAsOnDisk(fixture, roomId);
    });
  });
});
