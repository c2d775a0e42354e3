/** Rows of this slice that belong to a room. */
export const accountDataRoomRows = {
  tables: [
    { table: 'account_data', column: 'room_id', holds: 'room id', key: ['user_id', 'room_id', 'type'] },
  ],
} as const;
