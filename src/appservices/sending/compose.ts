import type { Appservice } from '../../appservice-registry/index.ts';
import type { KeyCounts } from '../../e2ee/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { isHidden, type RoomReader, withoutExpired } from '../../room-engine/index.ts';
import type { ClientEvents } from '../../rooms/index.ts';
import type { MessageQueues } from '../../to-device/index.ts';
import type { OutboxRow } from '../store.ts';
import { type DeviceListDeps, deviceListsOf } from './device-lists.ts';
import { splitDevice } from './device-subject.ts';
import { type PrejoinStateDeps, prejoinMemberOf, prejoinStateOf } from './prejoin-state.ts';
import { transactionBody } from './transaction-body.ts';

export interface ComposeDeps extends PrejoinStateDeps, DeviceListDeps {
  readonly engine: PrejoinStateDeps['engine'] & DeviceListDeps['engine'] & Pick<RoomReader, 'retention'>;
  readonly clientEvents: Pick<ClientEvents, 'render'>;
  readonly queues: Pick<MessageQueues, 'pending'>;
  readonly keyCounts: Pick<KeyCounts, 'get'>;
}

/**
 * Composes a transaction from entries of the outbox, in their order.
 * @returns `undefined` when there is nothing to send, for instance because the events of the entries were deleted
 */
export async function composeTransaction(
  deps: ComposeDeps,
  service: Appservice,
  rows: readonly OutboxRow[],
  ephemeral: readonly JsonObject[],
): Promise<string | undefined> {
  const events = await eventsOf(deps, service, rows);
  const toDevice = await messagesOf(deps, rows);
  const deviceLists = await deviceListsOf(deps, service, rows);
  const devices = service.registration.receivesDeviceChanges
    ? new Set([...subjectsOf(rows, 'key counts'), ...subjectsOf(rows, 'to-device')])
    : [];
  const counts = await countsOf(deps, devices);
  const lists = deviceLists.changed.length + deviceLists.left.length;
  if (events.length + toDevice.length + lists + ephemeral.length + counts.size === 0) return undefined;
  return transactionBody({
    events,
    ephemeral,
    toDevice,
    deviceLists,
    oneTimeKeyCounts: byUser(counts, ({ oneTimeKeyCounts }) => oneTimeKeyCounts),
    unusedFallbackKeyTypes: byUser(counts, ({ unusedFallbackKeyTypes }) => unusedFallbackKeyTypes),
  });
}

/** Returns the subjects of the entries of a kind. */
const subjectsOf = (rows: readonly OutboxRow[], kind: OutboxRow['kind']) =>
  rows.filter((row) => row.kind === kind).map(({ subject }) => subject);

async function eventsOf(
  deps: ComposeDeps,
  { sender, users }: Appservice,
  rows: readonly OutboxRow[],
): Promise<JsonObject[]> {
  const nids = rows.filter(({ kind }) => kind === 'event').map((row) => row.event_nid);
  if (nids.length === 0) return [];
  const { engine, clientEvents } = deps;
  const stored = await engine.events.getMany(nids);
  const shown = nids.flatMap((nid) => stored.get(nid) ?? []).filter((event) => !isHidden(event));
  // Messages may expire while the service is down.
  const unexpired = await withoutExpired(engine, shown);
  const visible = unexpired.map((event) => ({ stored: event, membership: undefined }));
  const rendered = await clientEvents.render(visible, { userId: sender, deviceId: undefined });
  const byId = new Map(rendered.map((event) => [event['event_id'], event]));
  for (const event of unexpired) {
    const member = prejoinMemberOf(event);
    const renderedEvent = byId.get(event.event.eventId);
    if (member === undefined || !renderedEvent || !users.has(event.event.stateKey ?? '')) continue;
    const state = await prejoinStateOf(deps, event);
    if (state.length > 0) {
      const unsigned = { ...(renderedEvent['unsigned'] as JsonObject | undefined), [member]: state };
      byId.set(event.event.eventId, { ...renderedEvent, unsigned });
    }
  }
  return [...byId.values()];
}

/** Returns messages in the format of `to_device` of transactions: each with its recipient, a user and a device. */
async function messagesOf({ queues }: ComposeDeps, rows: readonly OutboxRow[]): Promise<JsonObject[]> {
  const messages: JsonObject[] = [];
  for (const { kind, subject, position } of rows) {
    if (kind !== 'to-device') continue;
    const [userId, deviceId] = splitDevice(subject);
    const range = { after: position - 1, upTo: position, limit: 1 };
    const [message] = (await queues.pending(userId, deviceId, range)).messages;
    if (message === undefined) continue;
    messages.push({ ...(JSON.parse(message) as JsonObject), to_user_id: userId, to_device_id: deviceId });
  }
  return messages;
}

type Counts = Awaited<ReturnType<KeyCounts['get']>>;

/** Reads the counts of the keys of devices. @param devices subjects of outbox entries: user ids and device ids */
async function countsOf({ keyCounts }: ComposeDeps, devices: Iterable<string>): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>();
  for (const device of devices) counts.set(device, await keyCounts.get(...splitDevice(device)));
  return counts;
}

/** Returns a value of the counts of each device, by user id and device id. */
function byUser(counts: ReadonlyMap<string, Counts>, read: (counts: Counts) => unknown): JsonObject {
  const users: Record<string, Record<string, unknown>> = {};
  for (const [device, deviceCounts] of counts) {
    const [userId, deviceId] = splitDevice(device);
    users[userId] ??= {};
    users[userId][deviceId] = read(deviceCounts);
  }
  return users as JsonObject;
}
