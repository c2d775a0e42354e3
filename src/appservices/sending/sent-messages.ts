import type { Appservice } from '../../appservice-registry/index.ts';
import type { MessageQueues } from '../../to-device/index.ts';
import type { OutboxRow } from '../store.ts';
import { splitDevice } from './device-subject.ts';

/**
 * Deletes to-device messages that are in a stored transaction, if the service owns their recipients and encrypts for them
 * (MSC3202). Messages to other users stay, because these users may have clients that receive the messages in syncs.
 */
export async function acknowledgeMessages(
  queues: Pick<MessageQueues, 'acknowledge'>,
  service: Appservice,
  rows: readonly OutboxRow[],
): Promise<void> {
  if (!service.registration.receivesDeviceChanges) return;
  const newest = new Map<string, number>();
  for (const row of rows) if (row.kind === 'to-device') newest.set(row.subject, row.position);
  for (const [device, position] of newest) {
    const [userId, deviceId] = splitDevice(device);
    if (service.ownsUser(userId)) await queues.acknowledge(userId, deviceId, position);
  }
}
