/** What this slice keeps of rooms: whose room it is. With the next notice the user gets another one. */
export const serverNoticeRoomRows = {
  tables: [{ table: 'server_notice_rooms', column: 'room_id', holds: 'room id', key: ['user_id'] }],
} as const;
