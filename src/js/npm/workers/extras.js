// What the full edition has in place of this file is more.
import '../extras.js';
