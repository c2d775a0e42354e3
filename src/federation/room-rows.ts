/** Rows of this slice that belong to rooms. */
export const federationRoomRows = {
  tables: [
    { table: 'destination_rooms', column: 'room_nid', holds: 'room nid', key: ['destination', 'room_nid'] },
  ],
} as const;
