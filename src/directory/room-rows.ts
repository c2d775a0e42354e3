/** The rows of this slice that refer to a room. */
export const directoryRoomRows = {
  tables: [{ table: 'room_stats', column: 'room_nid', holds: 'room nid', key: ['room_nid'] }],
} as const;
