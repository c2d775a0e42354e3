import type { AccessCheck } from '../../kernel/http/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { RoomView } from '../history/room-view.ts';

/**
 * Returns the access check of a path with `:roomId`: it refuses users who may not read this room.
 * @throws MatrixError M_FORBIDDEN, as `RoomView.forReading`
 */
export const readAccess =
  (engine: RoomReader): AccessCheck =>
  async ({ userId }, { roomId = '' }) =>
    RoomView.forReading(engine, await engine.heads.get(roomId), userId);
