import {
  type BuiltEvent,
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type RoomEvent,
} from '../../protocol/index.ts';

/** Signatures of one server on one event are few; more are not stored. */
const maxSignatures = 10;

/**
 * One of our events with the signatures that another server has added to it. Nothing else is taken from its answer.
 * @returns `undefined` when what it sent back is another event, or is not signed by it
 */
export function withSignaturesFrom(
  server: string,
  own: BuiltEvent,
  returned: JsonObject,
): JsonObject | undefined {
  if (textWithoutSignatures(own.event.pdu) !== textWithoutSignatures(returned)) return undefined;
  const all = returned['signatures'];
  const added = isJsonObject(all) && Object.hasOwn(all, server) ? all[server] : undefined;
  if (!isJsonObject(added)) return undefined;
  const signatures = Object.entries(added).filter(([, text]) => typeof text === 'string');
  if (signatures.length === 0 || signatures.length > maxSignatures) return undefined;
  const before = own.event.pdu['signatures'] as JsonObject;
  // The server may have signed it before, as the policy server of the room.
  const ofServer = isJsonObject(before[server]) ? before[server] : {};
  return {
    ...own.event.pdu,
    signatures: { ...before, [server]: { ...Object.fromEntries(signatures), ...ofServer } },
  };
}

function textWithoutSignatures(pdu: JsonObject | RoomEvent['pdu']): string | undefined {
  const { signatures: _signatures, unsigned: _unsigned, ...rest } = pdu;
  try {
    return canonicalJson(rest, 'as written');
  } catch {
    return undefined;
  }
}
