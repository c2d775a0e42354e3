import { invalidParam } from '../../protocol/index.ts';

/** Reads the id of a report from a path. @throws MatrixError M_INVALID_PARAM */
export function reportIdOf(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw invalidParam('The id of a report is a number of at most 15 digits');
  return Number(text);
}
