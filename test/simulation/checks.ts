import { sql } from 'kysely';
import type { RoomEvent } from '../../src/protocol/index.ts';
import { membershipOf, serverOfUser, splitStateMapKey, stateMapKey } from '../../src/protocol/index.ts';
import { describeEvent, type View, viewOf } from './room-view.ts';
import type { SimulatedServer } from './server.ts';
import type { World } from './world.ts';

const rejected = 1;
const softFailed = 2;
const outlier = 4;

/** Describes the work that a server still has to do; empty when there is none. */
export async function pendingWork(
  server: SimulatedServer,
  roomId: string,
  servers: readonly SimulatedServer[],
): Promise<string> {
  const { run } = server;
  if (!run) return 'the server does not run';
  const reader = run.kernel.database.reader<never>();
  const { rows } = await sql<Readonly<Record<string, number>>>`select
    (select count(*) from incoming_events) as staged_incoming,
    (select count(*) from backward_extremities where backfills_left is not null) as missing_history,
    (select count(*) from destination_rooms) as catch_up_rooms,
    (select count(*) from federation_outbox) as outbox_edus,
    (select count(*) from unannounced_devices) as unannounced_devices,
    (select count(*) from jobs where kind = 'rooms/send-leave' and state = 'waiting') as pending_leaves,
    (select count(*) from remote_device_lists where stale = 1) as stale_device_lists`.execute(reader);
  const { pendingPdus, destinations } = run.sender.status;
  const partial = (await canBeCompleted(server, roomId, servers)) ? 1 : 0;
  // An EDU that waits for a retry may be on its way to the disk: neither in memory nor in the outbox.
  const busy = destinations.sending + destinations['catching up'] + destinations['waiting to retry'];
  const counts = { ...rows[0], pendingPdus, busy, partial };
  return Object.values(counts).some((count) => count > 0) ? JSON.stringify(counts) : '';
}

/**
 * Whether a server has only partial state of the room, and another server will send it the missing state. No other
 * server does that when state resolution has removed the server's join (see `seesInRoom`).
 */
async function canBeCompleted(
  { run, name }: SimulatedServer,
  roomId: string,
  servers: readonly SimulatedServer[],
): Promise<boolean> {
  const head = await run?.rooms.engine.heads.get(roomId);
  if (!head?.isPartial || !head.servers.has(name)) return false;
  for (const other of servers) {
    const known = await other.run?.rooms.engine.heads.get(roomId);
    if (other.name !== name && (!other.run || known?.servers.has(name))) return true;
  }
  return false;
}

/**
 * The times since which servers have been in the room without interruption, in simulated milliseconds;
 * servers outside are absent.
 */
export type JoinedSince = ReadonlyMap<string, number>;

/**
 * Checks that all servers in the room agree on it.
 * @param forksMerged whether events were sent since the network has healed; before that, an event that only
 * some servers soft-failed may leave the servers with different states
 */
export async function checkServersAgree(
  world: World,
  roomId: string,
  joinedSince: JoinedSince,
  forksMerged = true,
): Promise<readonly View[]> {
  const views: View[] = [];
  for (const server of world.servers) {
    const view = await viewOf(server, roomId);
    if (view) views.push(view);
    for (const error of server.errors) world.fail(`${server.name} has logged an error: ${error}`);
  }
  const joined = views.filter(({ isJoined }) => isJoined);
  for (const view of joined) checkMembers(world, view);
  for (const [index, view] of joined.entries()) {
    const peer = joined.slice(0, index).find((other) => seesInRoom(view, other) && seesInRoom(other, view));
    if (peer && forksMerged) compareStates(world, peer, view);
  }
  for (const view of joined) {
    for (const other of joined) if (other !== view) await checkDelivered(world, view, other, joinedSince);
  }
  return views;
}

function checkMembers(world: World, view: View): void {
  for (const [userId, membership] of view.membersInState) {
    const listed = view.members.get(userId);
    if (listed !== membership) {
      world.fail(`${view.server.name} lists ${userId} as ${listed}, but its room state says ${membership}`);
    }
  }
}

/**
 * Whether a server's room state contains a joined user of another server. State resolution may remove the join of a
 * user whose server never received the conflicting events, because that server was not in the room yet. No server
 * sends these events to that server afterwards, so the states are not compared. `checkDelivered` still checks that each
 * server has the events that were sent while it was in the room.
 */
function seesInRoom(view: View, { server }: View): boolean {
  const joined = [...view.membersInState].filter(([, membership]) => membership === 'join');
  return joined.some(([userId]) => serverOfUser(userId) === server.name);
}

function compareStates(world: World, first: View, second: View): void {
  for (const key of new Set([...first.state.keys(), ...second.state.keys()])) {
    const [here, there] = [first.state.get(key), second.state.get(key)];
    if (here === there) continue;
    world.fail(
      `${splitStateMapKey(key).join(' ')} is ${describeEvent(first, here)} at ${first.server.name} and ` +
        `${describeEvent(second, there)} at ${second.server.name}`,
    );
  }
}

/**
 * Checks that events from users of one server are on the timeline of another server that was in the room when they
 * were sent, and stayed. An event may only be missing when it was soft-failed because of an event that the sender's
 * server did not have yet.
 */
async function checkDelivered(world: World, from: View, to: View, joinedSince: JoinedSince): Promise<void> {
  const since = joinedSince.get(to.server.name);
  if (since === undefined) return;
  for (const [eventId, stored] of from.events) {
    const { event } = stored;
    const row = to.rows.get(eventId);
    if (stored.stream !== undefined && row && (row.flags & rejected) !== 0) {
      world.fail(
        `${describeEvent(from, eventId)} is accepted at ${from.server.name}, and rejected at ${to.server.name}`,
      );
    }
    if (stored.stream === undefined || serverOfUser(event.sender) !== from.server.name) continue;
    if (event.originServerTs - from.server.skew <= since || row?.stream) continue;
    if (!(await hadUserInRoom(from, eventId, to.server.name))) continue;
    const isSoftFailed = row !== undefined && (row.flags & softFailed) !== 0;
    // State resolution may have removed the sender's join: see `seesInRoom`.
    const senderNotJoined = to.membersInState.get(event.sender) !== 'join';
    if (isSoftFailed && (senderNotJoined || hasSoftFailureReason(to, event))) continue;
    const how = row ? `has the flags ${row.flags}` : 'is missing';
    world.fail(`${describeEvent(from, eventId)} of ${from.server.name} ${how} at ${to.server.name}`);
  }
}

/** Whether a user of the server was joined before the event. */
async function hadUserInRoom({ run, events }: View, eventId: string, serverName: string): Promise<boolean> {
  const { engine } = run.rooms;
  const { events: store } = engine;
  const state = await engine.stateAt(events.get(eventId)!, 'before');
  for (const [key, nid] of state ?? []) {
    const [type, userId] = splitStateMapKey(key);
    if (type !== 'm.room.member' || serverOfUser(userId) !== serverName) continue;
    const stored = await store.get(nid);
    if (stored && membershipOf(stored.event.content) === 'join') return true;
  }
  return false;
}

/** Returns a function that returns whether the room state of a server, `viewer`, contains joined users of `seen`. */
export function visibilityBetween(
  views: readonly View[],
): (viewer: SimulatedServer, seen: SimulatedServer) => boolean {
  const viewOfServer = (server: SimulatedServer) =>
    views.find((view) => view.server === server && view.isJoined);
  return (viewer, seen) => {
    const [here, there] = [viewOfServer(viewer), viewOfServer(seen)];
    return here !== undefined && there !== undefined && seesInRoom(here, there);
  };
}

/** Checks that servers still have the events that they acknowledged to clients. */
export async function checkAcknowledged(
  world: World,
  views: readonly View[],
  acknowledged: readonly { readonly eventId: string; readonly server: string }[],
): Promise<void> {
  for (const { eventId, server } of acknowledged) {
    const view = views.find((candidate) => candidate.server.name === server);
    if (!view || view.events.has(eventId)) continue;
    const outOfBand = await view.run.rooms.engine.events.getOutOfBand(view.roomNid, eventId);
    if (!outOfBand) world.fail(`${server} has lost ${eventId}, which it had acknowledged`);
  }
}

/**
 * Checks that rejected invites and withdrawn knocks are gone from the state of every server that has the
 * leave event.
 */
export function checkEndedMemberships(
  world: World,
  views: readonly View[],
  endedMemberships: readonly { readonly userId: string; readonly ended: string; readonly endedBy: string }[],
): void {
  for (const { userId, ended, endedBy } of endedMemberships) {
    for (const view of views.filter(({ isJoined }) => isJoined)) {
      const isKnown = view.rows.get(endedBy)?.stream != null;
      if (isKnown && view.state.get(stateMapKey('m.room.member', userId)) === ended) {
        world.fail(
          `${view.server.name} has ${describeEvent(view, endedBy)}, but still has ${describeEvent(view, ended)} in its state`,
        );
      }
    }
  }
}

/** Types of events that authorize others, and can so be the reason for a soft failure. */
const authorizing: ReadonlySet<string> = new Set([
  'm.room.power_levels',
  'm.room.join_rules',
  'm.room.member',
]);

/** Whether the server has an authorizing event that is not an ancestor of this event. */
function hasSoftFailureReason(view: View, event: RoomEvent): boolean {
  const before = ancestors(view, event);
  for (const [eventId, { event: other }] of view.events) {
    if (before.has(eventId) || eventId === event.eventId || !authorizing.has(other.type)) continue;
    if (((view.rows.get(eventId)?.flags ?? outlier) & (rejected | outlier)) !== 0) continue;
    return true;
  }
  return false;
}

function ancestors(view: View, event: RoomEvent): ReadonlySet<string> {
  const found = new Set<string>();
  const wanted = [...event.prevEventIds];
  for (const eventId of wanted) {
    if (found.has(eventId)) continue;
    found.add(eventId);
    wanted.push(...(view.events.get(eventId)?.event.prevEventIds ?? []));
  }
  return found;
}
