/** The rows of this slice that belong to rooms. */
export const syncRoomRows = {
  tables: [
    {
      table: 'sliding_sync_rooms',
      column: 'room_nid',
      holds: 'room nid',
      key: ['connection', 'room_nid', 'generation'],
    },
  ],
} as const;
