import { sql } from 'kysely';
import type { RoomEvent } from '../../src/protocol/index.ts';
import { membershipOf, serverOfUser, splitStateMapKey, stateMapKey } from '../../src/protocol/index.ts';
import type { SimulatedServer } from './server.ts';
import { described, type View, viewOf } from './view.ts';
import type { World } from './world.ts';

const [rejected, softFailed, outlier] = [1, 2, 4];

/** What still goes on at a server, empty where nothing does. */
export async function unfinished({ run }: SimulatedServer, roomId: string): Promise<string> {
  if (!run) return 'it does not run';
  const reader = run.kernel.database.reader<never>();
  const { rows } = await sql<Readonly<Record<string, number>>>`select
    (select count(*) from incoming_events) as staged,
    (select count(*) from backward_extremities where answers_left is not null) as missed,
    (select count(*) from destination_rooms) as behind,
    (select count(*) from federation_outbox) as outbox,
    (select count(*) from unannounced_devices) as unannounced,
    (select count(*) from remote_device_lists where stale = 1) as stale`.execute(reader);
  const { pendingPdus, destinations } = run.sender.status;
  const head = await run.rooms.engine.heads.get(roomId);
  const partial = head?.isPartial && head.servers.has(run.kernel.serverName) ? 1 : 0;
  // What waits for another attempt may be on its way to the disk, and neither here nor there.
  const busy = destinations.sending + destinations['catching up'] + destinations['waiting to retry'];
  const left = { ...rows[0], pendingPdus, busy, partial };
  return Object.values(left).some((number) => number > 0) ? JSON.stringify(left) : '';
}

/** Since when a server has been in the room without a break, in simulated milliseconds; absent while it is not. */
export type Stays = ReadonlyMap<string, number>;

/**
 * Looks whether all servers in the room say the same of it.
 * @param tied whether something was said since the network has healed; before that, what was soft-failed by one server
 * and not by another may make for different states
 */
export async function check(
  world: World,
  roomId: string,
  stays: Stays,
  tied = true,
): Promise<readonly View[]> {
  const views: View[] = [];
  for (const server of world.servers) {
    const view = await viewOf(server, roomId);
    if (view) views.push(view);
    for (const error of server.errors) world.fail(`${server.name} has logged an error: ${error}`);
  }
  const inside = views.filter(({ isIn }) => isIn);
  for (const view of inside) checkMembers(world, view);
  for (const [index, view] of inside.entries()) {
    const peer = inside.slice(0, index).find((other) => sees(view, other) && sees(other, view));
    if (peer && tied) compareStates(world, peer, view);
  }
  for (const view of inside) {
    for (const other of inside) if (other !== view) await checkArrivals(world, view, other, stays);
  }
  return views;
}

function checkMembers(world: World, view: View): void {
  for (const [userId, membership] of view.membersInState) {
    const listed = view.members.get(userId);
    if (listed !== membership) {
      world.fail(`${view.server.name} lists ${userId} as ${listed}, in its state the user is ${membership}`);
    }
  }
}

/**
 * Whether a server takes another one to be in the room. State resolution may remove the join of a user whose server
 * was not told of what speaks against it, for it was not in the room yet: then nobody tells it afterwards, either. What
 * it was told of as a server in the room is looked at in any case.
 */
function sees(view: View, { server }: View): boolean {
  const joined = [...view.membersInState].filter(([, membership]) => membership === 'join');
  return joined.some(([userId]) => serverOfUser(userId) === server.name);
}

function compareStates(world: World, one: View, other: View): void {
  for (const key of new Set([...one.state.keys(), ...other.state.keys()])) {
    const [here, there] = [one.state.get(key), other.state.get(key)];
    if (here === there) continue;
    world.fail(
      `${splitStateMapKey(key).join(' ')} is ${described(one, here)} at ${one.server.name} and ` +
        `${described(other, there)} at ${other.server.name}`,
    );
  }
}

/**
 * Looks whether what users of one server have sent is on the timeline of another server that was in the room then and
 * stayed. Missing may only be what was soft-failed because of something that the sender's server did not know yet.
 */
async function checkArrivals(world: World, from: View, to: View, stays: Stays): Promise<void> {
  const since = stays.get(to.server.name);
  if (since === undefined) return;
  for (const [eventId, stored] of from.events) {
    const { event } = stored;
    const row = to.rows.get(eventId);
    if (stored.stream !== undefined && row && (row.flags & rejected) !== 0) {
      world.fail(`${described(from, eventId)} is at ${from.server.name}, and rejected at ${to.server.name}`);
    }
    if (stored.stream === undefined || serverOfUser(event.sender) !== from.server.name) continue;
    if (event.originServerTs - from.server.skew <= since || row?.stream) continue;
    if (!(await wasThere(from, eventId, to.server.name))) continue;
    const isSoftFailed = row !== undefined && (row.flags & softFailed) !== 0;
    // State resolution may have removed the sender's join: see `sees`.
    const isOut = to.membersInState.get(event.sender) !== 'join';
    if (isSoftFailed && (isOut || hasReason(to, event))) continue;
    const how = row ? `has the flags ${row.flags}` : 'is missing';
    world.fail(`${described(from, eventId)} of ${from.server.name} ${how} at ${to.server.name}`);
  }
}

/** Whether a user of the server was in the room before an event. */
async function wasThere({ run, events }: View, eventId: string, serverName: string): Promise<boolean> {
  const { placement, events: store } = run.rooms.engine;
  const state = await placement.stateAt(events.get(eventId)!, 'before');
  for (const [key, nid] of state ?? []) {
    const [type, userId] = splitStateMapKey(key);
    if (type !== 'm.room.member' || serverOfUser(userId) !== serverName) continue;
    const stored = await store.get(nid);
    if (stored && membershipOf(stored.event.content) === 'join') return true;
  }
  return false;
}

/** Says of two servers whether the one takes the other to be in the room. */
export function seesOf(views: readonly View[]): (one: SimulatedServer, other: SimulatedServer) => boolean {
  const of = (server: SimulatedServer) => views.find((view) => view.server === server && view.isIn);
  return (one, other) => {
    const [here, there] = [of(one), of(other)];
    return here !== undefined && there !== undefined && sees(here, there);
  };
}

/** Looks whether servers still have what they have told clients to have. */
export async function checkAcknowledged(
  world: World,
  views: readonly View[],
  acknowledged: readonly { readonly eventId: string; readonly server: string }[],
): Promise<void> {
  for (const { eventId, server } of acknowledged) {
    const view = views.find((one) => one.server.name === server);
    if (!view || view.events.has(eventId)) continue;
    const outside = await view.run.rooms.engine.events.getOutside(view.roomNid, eventId);
    if (!outside) world.fail(`${server} has lost ${eventId}, which it had acknowledged`);
  }
}

/** Looks whether invites and knocks that were ended are: where the end is known, nobody has them in their state. */
export function checkTurnedDown(
  world: World,
  views: readonly View[],
  turnedDown: readonly { readonly userId: string; readonly ended: string; readonly by: string }[],
): void {
  for (const { userId, ended, by } of turnedDown) {
    for (const view of views.filter(({ isIn }) => isIn)) {
      const isKnown = view.rows.get(by)?.stream != null;
      if (isKnown && view.state.get(stateMapKey('m.room.member', userId)) === ended) {
        world.fail(
          `${view.server.name} knows of ${described(view, by)}, and has ${described(view, ended)} all the same`,
        );
      }
    }
  }
}

/** What decides who may do what, and can so be a reason for soft failure. */
const deciding: ReadonlySet<string> = new Set(['m.room.power_levels', 'm.room.join_rules', 'm.room.member']);

/** Whether the server knows of something that decides about an event, and that the event does not come after. */
function hasReason(view: View, event: RoomEvent): boolean {
  const before = ancestors(view, event);
  for (const [eventId, { event: other }] of view.events) {
    if (before.has(eventId) || eventId === event.eventId || !deciding.has(other.type)) continue;
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
