/** The rows of this slice that refer to a room. A job without its row does nothing. */
export const delayedEventRoomRows = {
  tables: [{ table: 'delayed_events', column: 'room_id', holds: 'room id', key: ['delay_id'] }],
} as const;
