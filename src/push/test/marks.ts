import { MarkList } from '../unread/mark-list.ts';
import type { Tally } from '../unread/tally.ts';
import type { UnreadMark } from '../unread-mark.ts';

/** Returns a list of these marks. @param marks oldest first */
export function markList(marks: readonly UnreadMark[]): MarkList {
  const list = new MarkList(true);
  for (const mark of marks) list.push(mark);
  return list;
}

/** Returns the marks of a tally, oldest first. */
export function marksIn(tally: Tally): UnreadMark[] {
  const list = MarkList.fromStored(tally.toStored());
  return Array.from({ length: list.length }, (_, index) => list.at(index));
}
