import { decodePosition, encodePosition } from '../../../kernel/streams/index.ts';
import type { DeviceQueue, DeviceSection } from '../../../sync-contract/index.ts';
import type { SourceSection } from '../../sources/source-list.ts';
import type { ToDeviceRequest } from '../request.ts';
import type { ExtensionAnswer, ExtensionContext } from './extension.ts';

/** Number of messages in an answer when the request sets no limit. */
const defaultMessages = 100;

/** Maximum number of messages in an answer. */
const maxMessages = 1_000;

/** The inputs of extensions about a device. */
export type DeviceContext = Pick<ExtensionContext, 'userId' | 'deviceId' | 'since' | 'upTo' | 'changes'>;

/**
 * Returns to-device messages after the `since` of the extension's request. The device has received the messages up to
 * `since`, so they are deleted. Source: MSC3885.
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

/** Returns the answer of an extension, with the fields of all its sections. */
export async function deviceExtension(
  name: string,
  sections: readonly SourceSection<DeviceSection>[],
  { userId, deviceId, since, upTo, changes }: DeviceContext,
): Promise<ExtensionAnswer> {
  const changedBits = changes?.user ?? 0;
  const range = { after: since, upTo };
  const answers = await Promise.all(
    sections.map(({ bit, section }) => {
      const hasChanged = (changedBits & bit) !== 0;
      return section.fields({ userId, deviceId }, range, hasChanged);
    }),
  );
  // Each field has a comma in front; the first comma is cut off below.
  const text = answers.map(({ text }) => text).join('');
  return { name, text: `{${text.slice(1)}}`, hasNewData: answers.some(({ hasNewData }) => hasNewData) };
}
