/** What this slice keeps of rooms. */
export const threadSubscriptionRoomRows = {
  tables: [
    {
      table: 'thread_subscriptions',
      column: 'room_id',
      holds: 'room id',
      key: ['user_id', 'room_id', 'root_id'],
    },
  ],
} as const;
