/** Power levels and creators: what users may do in a room. */
export * from './content.ts';
export * from './creators.ts';
export * from './power-levels.ts';
