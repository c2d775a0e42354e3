/** The rows of this slice that refer to a room. With the next notice, its user gets another room. */
export const serverNoticeRoomRows = {
  tables: [{ table: 'server_notice_rooms', column: 'room_id', holds: 'room id', key: ['user_id'] }],
} as const;
