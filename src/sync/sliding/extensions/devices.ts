import { decodePosition, encodePosition } from '../../../kernel/streams/index.ts';
import type { DeviceQueue, DeviceSection } from '../../../sync-contract/index.ts';
import type { Listed } from '../../sources/source-list.ts';
import type { ToDeviceRequest } from '../request.ts';
import type { ExtensionAnswer, ExtensionContext } from './extension.ts';

/** Number of messages in one answer when the client does not ask for one, and maximum. */
const [defaultMessages, maxMessages] = [100, 1_000];

/** The inputs of extensions about one device. */
export type DeviceContext = Pick<ExtensionContext, 'userId' | 'deviceId' | 'since' | 'upTo' | 'changes'>;

/**
 * Returns messages to the device. Those up to the request's `since` have arrived and are dropped. Source:
 * MSC3885.
 * @throws MatrixError M_INVALID_PARAM for an unknown `since`
 */
export async function toDeviceExtension(
  queue: DeviceQueue,
  { userId, deviceId, upTo }: DeviceContext,
  { since, limit }: ToDeviceRequest,
): Promise<ExtensionAnswer> {
  const after = typeof since === 'string' ? decodePosition(since) : undefined;
  if (after !== undefined) await queue.acknowledge(userId, deviceId, after);
  const { messages, position } = await queue.forSync(userId, deviceId, {
    ...(after === undefined ? undefined : { after }),
    upTo,
    limit: Math.min(limit ?? defaultMessages, maxMessages),
  });
  const text = `{"next_batch":"${encodePosition(position)}","events":[${messages.join(',')}]}`;
  return { name: 'to_device', text, hasNewData: messages.length > 0 };
}

/** Returns an extension with the fields of all sections that belong to it. */
export async function deviceExtension(
  name: string,
  sections: readonly Listed<DeviceSection>[],
  { userId, deviceId, since, upTo, changes }: DeviceContext,
): Promise<ExtensionAnswer> {
  const bits = changes?.user ?? 0;
  const range = { after: since, upTo };
  const members = await Promise.all(
    sections.map(({ bit, section }) => section.members({ userId, deviceId }, range, (bits & bit) !== 0)),
  );
  const text = members.map((one) => one.text).join('');
  return { name, text: `{${text.slice(1)}}`, hasNewData: members.some(({ hasNewData }) => hasNewData) };
}
