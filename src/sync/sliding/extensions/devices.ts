import { decodePosition, encodePosition } from '../../../kernel/streams/index.ts';
import { UserPart } from '../../feeds/feed.ts';
import type { ExtensionRequests } from '../request.ts';
import type { ExtensionSources, ToDeviceSource } from '../sources.ts';
import type { ExtensionAnswer, ExtensionContext } from './extension.ts';

/** How many messages one answer holds by default, and at most. */
const [usualMessages, maxMessages] = [100, 1_000];

/** What the extensions about one device look at. */
export type DeviceContext = Pick<ExtensionContext, 'userId' | 'deviceId' | 'since' | 'upTo' | 'changes'>;

/**
 * Messages for the device. What comes up to the request's `since` has arrived and is not needed any more.
 * Source: MSC3885.
 * @throws MatrixError M_INVALID_PARAM for a foreign `since`
 */
export async function toDeviceExtension(
  source: ToDeviceSource,
  { userId, deviceId, upTo }: DeviceContext,
  { since, limit }: NonNullable<ExtensionRequests['to_device']>,
): Promise<ExtensionAnswer> {
  const after = typeof since === 'string' ? decodePosition(since) : undefined;
  if (after !== undefined) await source.acknowledge(userId, deviceId, after);
  const { messages, position } = await source.forSync(userId, deviceId, {
    ...(after === undefined ? undefined : { after }),
    upTo,
    limit: Math.min(limit ?? usualMessages, maxMessages),
  });
  const text = `{"next_batch":"${encodePosition(position)}","events":[${messages.join(',')}]}`;
  return { name: 'to_device', text, isNews: messages.length > 0 };
}

/** Whose keys to ask for again, and how many of its own the device has left. Source: MSC3884. */
export async function e2eeExtension(
  { deviceLists, keyCounts }: ExtensionSources,
  { userId, deviceId, since, upTo, changes }: DeviceContext,
): Promise<ExtensionAnswer> {
  const isQuiet = since === undefined || !deviceLists || deviceLists.isQuiet(since);
  const lists = isQuiet ? undefined : await deviceLists.changes(userId, since, upTo);
  const hasLists = lists !== undefined && lists.changed.length + lists.left.length > 0;
  const supply = await keyCounts?.supply(userId, deviceId);
  const body = {
    ...(hasLists ? { device_lists: lists } : undefined),
    ...(supply && {
      device_one_time_keys_count: supply.oneTimeKeyCounts,
      device_unused_fallback_key_types: supply.unusedFallbackKeyTypes,
    }),
  };
  const hasKeyNews = ((changes?.user ?? 0) & UserPart.keys) !== 0;
  return { name: 'e2ee', text: JSON.stringify(body), isNews: hasLists || hasKeyNews };
}
