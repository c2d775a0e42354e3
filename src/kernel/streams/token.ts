import { invalidParam } from '../../protocol/index.ts';

/**
 * Positions as clients hold them. The letter says what the token is, the digit which form of it:
 * `s1_4711`, a position; `s2_4711_4600`, a position and one that lags behind it (the messages to a device that did
 * not fit into the last answer). A later form may hold one position for each writer.
 */
const form = /^s(?:1_(\d{1,16})|2_(\d{1,16})_(\d{1,16}))$/;

/** What the positions of connections end in, which are more than that to those who give them out (sliding sync). */
const connectionForm = /^c1_\d{1,16}_\d{1,16}_(\d{1,16})$/;

/** What a token of a sync stands for. */
export interface SyncPosition {
  /** Everything up to here was told. */
  readonly position: number;
  /** Of messages to the device only those up to here; at most `position`. */
  readonly toDevice: number;
}

/** A position as clients hold it, for instance `s1_4711`. */
export function encodePosition(position: number): string {
  return `s1_${position}`;
}

/** A token of a sync: `s1_4711`, or `s2_4711_4700` where messages to the device lag behind the rest. */
export function encodeSyncPosition({ position, toDevice }: SyncPosition): string {
  return toDevice === position ? encodePosition(position) : `s2_${position}_${toDevice}`;
}

/** @throws MatrixError M_INVALID_PARAM when the token is not one of ours */
export function decodeSyncPosition(token: string): SyncPosition {
  const [, single, position = single, toDevice = single] = form.exec(token) ?? [];
  const decoded = { position: Number(position), toDevice: Number(toDevice) };
  if (!Number.isSafeInteger(decoded.position) || !(decoded.toDevice <= decoded.position)) {
    throw invalidParam('This is not a token of this server');
  }
  return decoded;
}

/**
 * The position of a token of any form, whichever sync has given it out.
 * Source: client-server API, "Pagination"; MSC4186, "Connections".
 * @throws MatrixError M_INVALID_PARAM when it is not one of ours
 */
export function decodePosition(token: string): number {
  const [, position] = connectionForm.exec(token) ?? [];
  return decodeSyncPosition(position === undefined ? token : encodePosition(Number(position))).position;
}
