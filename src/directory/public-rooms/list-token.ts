import { invalidParam } from '../../protocol/index.ts';

/** A position in the public room list: after a room for the direction `forward`, before the room for `backward`. */
export interface ListPlace {
  readonly direction: 'forward' | 'backward';
  readonly joinedMembers: number;
  readonly roomId: string;
}

/** Encodes a position as a token for clients. */
export function encodePlace({ direction, joinedMembers, roomId }: ListPlace): string {
  return Buffer.from(`${direction === 'forward' ? 'f' : 'b'}${joinedMembers} ${roomId}`).toString(
    'base64url',
  );
}

/** @throws MatrixError M_INVALID_PARAM for an invalid token */
export function decodePlace(token: string): ListPlace {
  const text = Buffer.from(token, 'base64url').toString();
  const [, letter, digits, roomId] = /^([fb])(\d{1,15}) ([^\0]{1,255})$/s.exec(text) ?? [];
  if (roomId === undefined) throw invalidParam('Invalid pagination token');
  return { direction: letter === 'f' ? 'forward' : 'backward', joinedMembers: Number(digits), roomId };
}
