/** What this slice keeps of rooms. */
export const pushRoomRows = {
  tables: [{ table: 'unread_tallies', column: 'room_id', holds: 'room id', key: ['user_id', 'room_id'] }],
} as const;
