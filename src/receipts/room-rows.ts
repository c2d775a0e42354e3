/** What this slice keeps of rooms. */
export const receiptRoomRows = {
  tables: [
    {
      table: 'receipts',
      column: 'room_id',
      holds: 'room id',
      key: ['room_id', 'user_id', 'type', 'thread_id'],
    },
  ],
} as const;
