import {
  invalidParam,
  isJsonObject,
  isUserId,
  type JsonObject,
  serverOfUser,
  tooLarge,
} from '../protocol/index.ts';

/** User id to device id, or `*` for all other devices of the user, to message content. */
export type MessageMap = ReadonlyMap<string, ReadonlyMap<string, JsonObject>>;

/** The device id that addresses all devices of a user that have no entry of their own. */
export const allDevices = '*';

/** Maximum number of UTF-8 bytes of a message content: the size limit of events. */
export const maxContentBytes = 65_536;

/**
 * Maximum number of devices in a request: a body of 4 MiB has encrypted room keys for fewer devices. `*` counts as one.
 */
const maxDevices = 5_000;

/**
 * Maximum number of servers in a request: each is looked up and connected to, whether it exists or not. Clients send to
 * some hundred devices at once.
 */
const maxServers = 1_000;

/** Maximum number of characters of a message type and of a transaction id. */
const maxNameLength = 255;

/**
 * Parses the messages of `PUT /sendToDevice`.
 * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
 */
export function parseMessageMap(messages: JsonObject): MessageMap {
  const parsed = new Map<string, Map<string, JsonObject>>();
  const servers = new Set<string>();
  let count = 0;
  for (const [userId, devices] of Object.entries(messages)) {
    if (!isUserId(userId)) throw invalidParam(`'${userId.slice(0, maxNameLength)}' is not a user id`);
    servers.add(serverOfUser(userId));
    if (servers.size > maxServers) throw tooLarge(`Send to users of at most ${maxServers} servers at once`);
    if (!isJsonObject(devices)) throw invalidParam(`The messages for ${userId} must be an object`);
    const contents = new Map<string, JsonObject>();
    for (const [deviceId, content] of Object.entries(devices)) {
      if (++count > maxDevices) throw tooLarge(`Send to at most ${maxDevices} devices at once`);
      if (!isJsonObject(content)) throw invalidParam(`A message for ${userId} is not an object`);
      contents.set(deviceId, content);
    }
    parsed.set(userId, contents);
  }
  return parsed;
}

/**
 * Returns the message as JSON, as the device receives it.
 * @throws MatrixError M_TOO_LARGE
 */
export function messageText(sender: string, type: string, content: JsonObject): string {
  const text = JSON.stringify(content);
  if (Buffer.byteLength(text) > maxContentBytes) {
    throw tooLarge(`The content of a message must have at most ${maxContentBytes} bytes`);
  }
  return `{"sender":${JSON.stringify(sender)},"type":${JSON.stringify(type)},"content":${text}}`;
}

/** Reports whether the content of a message is within the size limit. */
export const isContentWithinLimit = (content: JsonObject) =>
  Buffer.byteLength(JSON.stringify(content)) <= maxContentBytes;

/**
 * Checks the length of a message type or of a transaction id.
 * @param label the name of the value in the error
 * @throws MatrixError M_INVALID_PARAM for an empty or too long name
 */
export function checkNameLength(name: string, label: string): void {
  if (name === '' || name.length > maxNameLength) {
    throw invalidParam(`${label} must have 1 to ${maxNameLength} characters`);
  }
}
