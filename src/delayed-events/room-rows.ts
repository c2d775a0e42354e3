/** What this slice keeps of rooms: what is due to be sent there finds nothing to send. */
export const delayedEventRoomRows = {
  tables: [{ table: 'delayed_events', column: 'room_id', holds: 'room id', key: ['delay_id'] }],
} as const;
