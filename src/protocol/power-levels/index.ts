/** Who may do what in a room: power levels and creators. */
export * from './content.ts';
export * from './creators.ts';
export * from './power-levels.ts';
