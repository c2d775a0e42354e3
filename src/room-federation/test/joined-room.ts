import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { FakeRemoteServers } from '../../../test/support/rooms/fake-remote-servers.ts';
import { RemoteRoom } from '../../../test/support/rooms/remote-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { StoredEvent } from '../../room-engine/stored-event.ts';

export const creator = '@creator:a.example';
export const remoteBob = '@bob:b.example';

/** A remote room that a local user has joined: only the join is on the timeline, with a gap before it. */
export interface JoinedRoom {
  readonly room: RemoteRoom;
  readonly peers: FakeRemoteServers;
  readonly fixture: RoomsUnderTest;
  /** The event id of the local user's join. */
  readonly join: string;
  /** Sends events in one transaction and waits until they are processed. @returns the errors by event id */
  send(origin: string, ...eventIds: string[]): Promise<Record<string, string | undefined>>;
  /** Returns the event as this server has stored it. */
  stored(eventId: string): Promise<StoredEvent | undefined>;
  /**
   * Returns for each event `unknown` (never received, or staged), `rejected`, `soft-failed`, `outlier`, `older`
   * (backfilled) or `placed`.
   */
  statuses(...eventIds: string[]): Promise<string[]>;
  /** Restarts the server. Returns the same room. */
  restart(): Promise<JoinedRoom>;
}

/** Opens a remote room and joins it. @param prepare adds events to the room before the join */
export async function joinedRoom(
  open: OpenDatabase,
  { version = '10', prepare }: { version?: string; prepare?: (room: RemoteRoom) => void } = {},
): Promise<JoinedRoom> {
  const room = new RemoteRoom(creator, { version });
  room.join(remoteBob);
  prepare?.(room);
  const peers = new FakeRemoteServers(room);
  const fixture = await RoomsUnderTest.open(open, [], { otherServers: peers });
  const join = room.join(alice);
  const state = [...room.get(join).stateBefore.values()];
  const verified = (ids: Iterable<string>) => [...ids].map((id) => room.get(id));
  await fixture.engine.placement.enter(
    { roomId: room.roomId, version: room.version },
    { event: room.get(join), state: verified(state), authChain: verified(room.authChain([join, ...state])) },
  );
  return joinedRoomOf({ room, peers, fixture, join, open });
}

function joinedRoomOf(parts: {
  room: RemoteRoom;
  peers: FakeRemoteServers;
  fixture: RoomsUnderTest;
  join: string;
  open: OpenDatabase;
}): JoinedRoom {
  const { room, peers, fixture, join, open } = parts;
  const { incoming } = fixture.rooms;
  const stored = (eventId: string) => fixture.engine.events.getById(eventId);
  return {
    room,
    peers,
    fixture,
    join,
    stored,
    async send(origin, ...eventIds) {
      const outcomes = await incoming.receive(origin, room.pdus(eventIds));
      await incoming.settled();
      return Object.fromEntries(Object.entries(outcomes).map(([id, { error }]) => [id, error]));
    },
    statuses: (...eventIds) => Promise.all(eventIds.map(async (id) => statusOf(await stored(id)))),
    async restart() {
      return joinedRoomOf({ ...parts, fixture: await fixture.restart(open, { otherServers: peers }) });
    },
  };
}

function statusOf(stored: StoredEvent | undefined): string {
  if (!stored) return 'unknown';
  if (stored.rejected) return 'rejected';
  if (stored.softFailed) return 'soft-failed';
  if (stored.stream === undefined) return 'outlier';
  return stored.stream < 0 ? 'older' : 'placed';
}
