import { createHash } from 'node:crypto';
import type { AnyWriter } from '../../kernel/database/index.ts';
import { isJsonObject, isServerName, isUserId, type JsonObject, serverOfUser } from '../../protocol/index.ts';
import { isFitContent, type MessageMap, type RemoteDelivery, type ToDevice } from '../../to-device/index.ts';
import type { EduHandler } from '../edus/edu-handlers.ts';
import { isEduUserOf } from '../edus/edu-users.ts';
import type { Outbox } from './device-list-announcer.ts';

/** UTF-16 units of the messages in one EDU, unless it holds a single one: a transaction holds up to 100 of them. */
const largestEdu = 65_536;

/** Characters of the id of a message as the specification has it, and as it is taken; of a type. */
const [idLength, longestId, longestType] = [32, 255, 255];

/** Messages in one EDU that comes in. */
const maxMessages = 10_000;

/** Sends messages to devices of other servers' users. Source: server-server API, "Send-to-device messaging". */
export class DirectToDeviceSender implements RemoteDelivery {
  readonly #outbox: Outbox;

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  async enqueue(
    writer: AnyWriter,
    _publish: unknown,
    { sender, type, messageId, messages }: Parameters<RemoteDelivery['enqueue']>[2],
  ): Promise<void> {
    const servers = Map.groupBy(messages, ([userId]): string => serverOfUser(userId));
    for (const [server, users] of servers) {
      if (!isServerName(server)) continue;
      for (const [part, some] of parts(users).entries()) {
        const content = { sender, type, message_id: idOf(messageId, part), messages: some };
        await this.#outbox.addForAll(writer, [server], { type: 'm.direct_to_device', content });
      }
    }
  }
}

/** Splits messages so that none of the parts is very large. */
function parts(users: readonly (readonly [string, ReadonlyMap<string, JsonObject>])[]): JsonObject[] {
  const found: Record<string, Record<string, JsonObject>>[] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const [userId, contents] of users) {
    for (const [deviceId, content] of contents) {
      const length = userId.length + deviceId.length + JSON.stringify(content).length;
      if (size + length > largestEdu) {
        found.push({});
        size = 0;
      }
      size += length;
      const part = found.at(-1)!;
      part[userId] = { ...part[userId], [deviceId]: content };
    }
  }
  return found as unknown as JsonObject[];
}

/** The id of each part differs, and is the same when the same is sent again. */
function idOf(messageId: string, part: number): string {
  if (part === 0) return messageId.slice(0, idLength);
  return createHash('sha256').update(`${messageId} ${part}`).digest('base64url').slice(0, idLength);
}

/**
 * Takes `m.direct_to_device` of other servers: what is for devices of this one's users is queued, each message once.
 * @param sawDevice is told of devices of other servers' users that messages name
 */
export function directToDeviceHandler(
  toDevice: ToDevice,
  serverName: string,
  sawDevice: (userId: string, deviceId: string) => Promise<void>,
): EduHandler {
  return async (origin, content) => {
    const { sender, type, message_id: id } = content;
    if (!isEduUserOf(origin, sender)) return;
    if (!isText(type, longestType) || !isText(id, longestId)) return;
    const messages = readMessages(content['messages'], serverName);
    if (messages.size === 0) return;
    const from = { name: origin, deviceId: undefined };
    await toDevice.send({ sender, origin: from, txnId: id, type, messages });
    const device = type in namesItsDevice ? firstContent(messages)?.[namesItsDevice[type]!] : undefined;
    if (typeof device === 'string' && !device.includes('\0')) await sawDevice(sender, device);
  };
}

/** Messages that say which device they are from, and where. */
const namesItsDevice: Readonly<Record<string, string>> = {
  __proto__: null!,
  'm.room_key_request': 'requesting_device_id',
  'm.key.verification.request': 'from_device',
  'm.key.verification.start': 'from_device',
};

/** Those of the messages that make sense and are for users of this server. */
function readMessages(value: unknown, serverName: string): MessageMap {
  const messages = new Map<string, Map<string, JsonObject>>();
  let count = 0;
  for (const [userId, devices] of Object.entries(isJsonObject(value) ? value : {})) {
    if (!isUserId(userId) || serverOfUser(userId) !== serverName || !isJsonObject(devices)) continue;
    const contents = new Map<string, JsonObject>();
    for (const [deviceId, content] of Object.entries(devices)) {
      if (++count > maxMessages) return messages;
      if (isJsonObject(content) && isFitContent(content)) contents.set(deviceId, content);
    }
    if (contents.size > 0) messages.set(userId, contents);
  }
  return messages;
}

function firstContent(messages: MessageMap): JsonObject | undefined {
  for (const contents of messages.values()) for (const content of contents.values()) return content;
  return undefined;
}

const isText = (value: unknown, longest: number): value is string =>
  typeof value === 'string' && value !== '' && value.length <= longest;
