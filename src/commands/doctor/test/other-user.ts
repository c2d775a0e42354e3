/** Runs a synchronous check as a user without privileges, because root may read every file. */
export function asOtherUser<T>(check: () => T): T {
  if (process.getuid?.() !== 0) return check();
  process.seteuid!(65_534);
  try {
    return check();
  } finally {
    process.seteuid!(0);
  }
}
