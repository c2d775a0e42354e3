import {
  type BuiltEvent,
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type RoomEvent,
} from '../../protocol/index.ts';

/** Maximum number of signatures of one server on one event. */
const maxSignatures = 10;

/**
 * Adds the signatures of a remote server to a local event. Nothing else is taken from the event that the server
 * returned.
 * @returns the PDU; `undefined` when the returned event differs, or has no or too many signatures of that server
 */
export function withSignaturesFrom(
  server: string,
  sent: BuiltEvent,
  returned: JsonObject,
): JsonObject | undefined {
  if (textToCompare(sent.event.pdu) !== textToCompare(returned)) return undefined;
  const all = returned['signatures'];
  const added = isJsonObject(all) && Object.hasOwn(all, server) ? all[server] : undefined;
  if (!isJsonObject(added)) return undefined;
  const signatures = Object.entries(added).filter(([, text]) => typeof text === 'string');
  if (signatures.length === 0 || signatures.length > maxSignatures) return undefined;
  const before = sent.event.pdu['signatures'] as JsonObject;
  // The server may have signed the event already as the policy server of the room; that signature stays.
  const ofServer = isJsonObject(before[server]) ? before[server] : {};
  return {
    ...sent.event.pdu,
    signatures: { ...before, [server]: { ...Object.fromEntries(signatures), ...ofServer } },
  };
}

/** Returns all fields except `signatures` and `unsigned` as canonical JSON; `undefined` where they have no such form. */
function textToCompare(pdu: JsonObject | RoomEvent['pdu']): string | undefined {
  const { signatures: _signatures, unsigned: _unsigned, ...comparedFields } = pdu;
  try {
    return canonicalJson(comparedFields, 'as written');
  } catch {
    return undefined;
  }
}
